"""The site in a browser: `make site-test`.

These files are not called test_*.py: `make test` needs no browser.  Chromium
and its driver must be installed (on Debian: apt-get install chromium
chromium-driver); where they are missing, the tests fail and say so.

axe.min.js is axe-core 4.14.1, unchanged, under the Mozilla Public License 2.0
(axe.LICENSE): it looks for what people with a screen reader, with a keyboard
only, or with weak eyes cannot use.
"""
