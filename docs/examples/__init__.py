"""The programs that the site shows: typed, run at each build."""
