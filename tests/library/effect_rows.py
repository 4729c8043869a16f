"""The classes of effects, construct by construct.

This is the truth about `fx.effects`, for people too: docs/differences.md shows
it.  It is no opinion: test_effects.py runs every row that can run, once
as it is and once with its node removed, and compares the world: an impure
node must leave a trace in it, a pure one must not.
"""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """A construct, its class, and words of the reason.

    Attributes:
        call: Python over the values and modules of test_effects.py; `aten` is
            torch.ops.aten, `fxt` a library of operators, `self.x` a module.
        kind: "pure", "impure" or "unknown".
        reason: a part of what `classify` says.
        runs: False where there is nothing to run, or no trace to see.
    """

    call: str
    kind: str
    reason: str
    runs: bool = True


IMPURE = [
    # operators by their schema
    Row("torch.relu_(z)", "impure", "aten::relu_ writes into `self`"),
    Row("F.relu_(z)", "impure", "aten::relu_ writes into `self`"),
    Row("F.elu_(z)", "impure", "aten::elu_ writes into `self`"),
    Row("torch.add(x, 1, out=y)", "impure", "`out=`"),
    Row("torch.sort(x, out=(y, index))", "impure", "`out=`"),
    Row("aten.add_.Tensor(x, y)", "impure", "aten::add_.Tensor writes"),
    Row("aten.add_(x, y)", "impure", "writes into `self`"),
    Row("aten.add.out(x, y, out=y)", "impure", "writes into `out`"),
    Row("aten.add(x, y, out=y)", "impure", "`out=`"),
    Row("aten.sort(x, values=y, indices=index)", "impure", "`values=`"),
    Row("aten.index_fill_(x, 0, row, 1)", "impure", "writes into `self`"),
    Row("aten.copy_(x, y)", "impure", "writes into `self`"),
    Row("torch.fill_(x, 3)", "impure", "writes into `self`"),
    # functions of torch that are Python
    Row("F.relu(z, inplace=True)", "impure", "`inplace=True`"),
    Row("F.relu(z, True)", "impure", "`inplace=True`"),
    Row("F.hardtanh(z, 0.0, 1.0, True)", "impure", "`inplace=True`"),
    Row("F.rrelu(z, inplace=True)", "impure", "`inplace=True`"),
    Row("F.relu(z, inplace=flag)", "impure", "`inplace=True`"),
    Row("F.normalize(x, out=y)", "impure", "`out=`"),
    Row("F.normalize(x, 2.0, 1, 1e-9, y)", "impure", "`out=`"),
    Row("F.embedding(index, x, max_norm=0.1)", "impure", "`max_norm=`"),
    Row("F.embedding(index, x, None, 0.1)", "impure", "`max_norm=`"),
    Row("F.embedding_bag(rows, x, max_norm=0.1)", "impure", "`max_norm=`"),
    Row("nn.init.zeros_(x)", "impure", "in place, as its name says"),
    # batch norm in training
    Row(
        "F.batch_norm(x, mean, var, training=True)",
        "impure",
        "writes into running_mean and running_var with running_mean and "
        "training set",
    ),
    Row("F.batch_norm(x, mean, var, None, None, flag)", "impure", "running_m"),
    Row("F.instance_norm(image, mean, var)", "impure", "use_input_stats set"),
    Row(
        "torch.batch_norm(x, None, None, mean, var, True, 0.1, 1e-5, False)",
        "impure",
        "aten::batch_norm writes into running_mean",
    ),
    Row(
        "aten.native_batch_norm.default"
        "(x, None, None, mean, var, True, 0.1, 1e-5)",
        "impure",
        "aten::native_batch_norm writes into running_mean",
    ),
    Row(
        "aten._native_batch_norm_legit"
        "(x, None, None, mean, var, True, 0.1, 1e-5)",
        "impure",
        "writes into `running_mean` and `running_var`",
    ),
    Row(
        "torch.batch_norm_update_stats(x, mean, var, 0.1)",
        "impure",
        "writes into running_mean and running_var",
    ),
    # random numbers
    Row("torch.rand(2)", "impure", "draws from the random state"),
    Row("torch.randn(2)", "impure", "draws"),
    Row("torch.randint(9, (2,))", "impure", "draws"),
    Row("torch.randperm(3)", "impure", "draws"),
    Row("torch.rand_like(x)", "impure", "aten::rand_like draws"),
    Row("torch.bernoulli(x)", "impure", "draws"),
    Row("torch.multinomial(x, 1)", "impure", "draws"),
    Row("torch.normal(x, y)", "impure", "draws"),
    Row("torch.poisson(x)", "impure", "draws"),
    Row("aten.rand_like.default(x)", "impure", "aten::rand_like draws"),
    Row("aten.rand_like(x)", "impure", "aten::rand_like draws"),
    Row("torch.dropout(x, 0.5, True)", "impure", "with p and train set"),
    Row("torch.dropout(x, 0.5, flag)", "impure", "with p and train set"),
    Row("aten.dropout.default(x, 0.5, True)", "impure", "aten::dropout draws"),
    Row("aten.native_dropout(x, 0.5, None)", "impure", "draws"),
    Row("F.dropout(x)", "impure", "with p and training set"),
    Row("F.dropout(x, inplace=True)", "impure", "draws"),
    Row("F.dropout(x, 0.5, flag)", "impure", "draws"),
    Row("F.dropout2d(image)", "impure", "draws"),
    Row("F.alpha_dropout(x, training=True)", "impure", "draws"),
    Row("F.feature_alpha_dropout(image, 0.5, True)", "impure", "draws"),
    Row("F.rrelu(z, training=True)", "impure", "with training set"),
    Row("F.gumbel_softmax(x)", "impure", "draws"),
    Row("F.fractional_max_pool2d(image, 2, 2)", "impure", "draws"),
    Row(
        "F.scaled_dot_product_attention(image, image, image, None, 0.5)",
        "impure",
        "with dropout_p set",
    ),
    Row(
        "torch.gru(rnn, hidden, weights, True, 2, 0.5, True, False, False)",
        "impure",
        "aten::gru draws",
    ),
    # functions of Python
    Row("operator.iadd(x, 1)", "impure", "operator.iadd works in place"),
    Row("operator.ior(table, {'b': 2})", "impure", "works in place"),
    Row("operator.setitem(x, 0, 7)", "impure", "operator.setitem works in"),
    Row("operator.delitem(items, 0)", "impure", "operator.delitem works in"),
    Row("operator.iadd(items, [3])", "impure", "works in place"),
    Row("setattr(box, 'size', 2)", "impure", "registered"),
    Row("delattr(box, 'name')", "impure", "registered"),
    Row("next(iterator)", "impure", "registered"),
    Row("print(x)", "impure", "builtins.print is registered"),
    # called for the effect
    Row("torch._assert(False, 'no')", "impure", "torch._assert is registered"),
    Row("torch._assert_async(no)", "impure", "returns nothing"),
    Row("aten._assert_async.msg(no, 'no')", "impure", "returns nothing"),
    Row("aten._assert_tensor_metadata(x, [9])", "impure", "returns nothing"),
    Row(
        "aten.sym_constrain_range.default(5, min=0, max=2)",
        "impure",
        "returns nothing",
    ),
    Row("torch.manual_seed(3)", "impure", "registered"),
    Row("torch.seed()", "impure", "registered"),
    Row("torch.set_rng_state(state)", "impure", "registered"),
    Row("torch.set_default_dtype(torch.float64)", "impure", "registered"),
    Row("torch.set_grad_enabled(False)", "impure", "registered"),
    Row("torch._C._set_grad_enabled(False)", "impure", "registered"),
    Row(
        "torch.amp.autocast_mode._enter_autocast"
        "('cpu', torch.bfloat16, True, False)",
        "impure",
        "registered",
    ),
    Row("torch.autograd.backward(loss)", "impure", "registered"),
    Row("torch.save(x, file)", "impure", "registered"),
    Row(
        "torch.ops.profiler._record_function_enter_new('range', None)",
        "impure",
        "profiler._record_function_enter_new is registered",
    ),
    Row("register(log)", "impure", "register is registered as having"),
    # operators of libraries
    Row("fxt.scale_(x)", "impure", "fx_effect_tests::scale_ writes into"),
    Row("fxt.scale_.default(x)", "impure", "writes into `x`"),
    Row("scale_op(x)", "impure", "fx_effect_tests::scale_ writes into `x`"),
    Row("fxt.logged(x)", "impure", "fx_effect_tests::logged is registered"),
    Row("fxt.logged.default(x)", "impure", "registered"),
    # methods of tensors, as functions and by name
    Row("torch.Tensor.add_(x, 1)", "impure", "in place, by its name"),
    Row("x.mul_(2)", "impure", "`.mul_()` works in place"),
    Row("x.requires_grad_()", "impure", "in place, by its name"),
    Row("x.resize_(2)", "impure", "in place, by its name"),
    Row("x.share_memory_()", "impure", "in place, by its name"),
    Row("x.__setitem__(0, 7)", "impure", "for what it changes"),
    Row("x.__iadd__(1)", "impure", "for what it changes"),
    Row("x.bernoulli(0.5)", "impure", "aten::bernoulli draws"),
    Row("x.multinomial(1)", "impure", "draws"),
    Row("loss.backward()", "impure", "for what it changes"),
    Row("loss.retain_grad()", "impure", "aten::retain_grad writes into"),
    Row("loss.register_hook(print)", "impure", "for what it changes"),
    Row(
        "leaf.register_post_accumulate_grad_hook(print)",
        "impure",
        "for what it changes",
    ),
    # methods of Python's containers
    Row("items.append(3)", "impure", "for what it changes"),
    Row("items.clear()", "impure", "for what it changes"),
    Row("table.update(a=2)", "impure", "for what it changes"),
    Row("table.pop('a')", "impure", "for what it changes"),
    # modules of torch.nn
    Row("self.relu_in_place(z)", "impure", "ReLU writes into its input"),
    Row("self.dropout(x)", "impure", "Dropout draws from the random state"),
    Row("self.rrelu(z)", "impure", "RReLU draws"),
    Row("self.pool(image)", "impure", "FractionalMaxPool2d draws"),
    Row("self.batch_norm(x)", "impure", "BatchNorm1d updates running_mean"),
    Row("self.instance_norm(image)", "impure", "updates running_mean"),
    Row("self.lstm(rnn)", "impure", "LSTM draws"),
    Row("self.attention(rnn, rnn, rnn)", "impure", "MultiheadAttention draws"),
    Row("self.encoder(rnn)", "impure", "MultiheadAttention draws"),
    Row("self.sequence(x)", "impure", "1: Dropout draws"),
    Row("self.embedding(index)", "impure", "Embedding renormalises"),
    Row("self.bag(rows)", "impure", "EmbeddingBag renormalises"),
    Row("self.lazy(x)", "impure", "LazyLinear makes its parameters"),
    Row("self.spectral(x)", "impure", "_SpectralNorm updates its singular"),
    Row("self.declared(x)", "impure", "_is_impure is set"),
    Row("self.traced_impure(z)", "impure", "relu_: aten::relu_ writes into"),
    # operators that return nothing
    Row("fxt.note(x)", "impure", "fx_effect_tests::note returns nothing"),
    Row("aten._backward(loss, [])", "impure", "returns nothing"),
]

PURE = [
    Row("torch.relu(x)", "pure", "the schema of aten::relu writes nothing"),
    Row("torch.add(x, 1)", "pure", "the schema of aten::add writes nothing"),
    Row("torch.add(x, 1, out=None)", "pure", "writes nothing"),
    Row("torch.sort(x)", "pure", "writes nothing"),
    Row("torch.einsum('ij->ji', x)", "pure", "writes nothing"),
    Row("torch.tensor(1.0)", "pure", "returns a value"),
    Row("torch.ones(2)", "pure", "writes nothing"),
    Row("torch.functional.norm(x)", "pure", "returns a value"),
    Row("aten.relu.default(x)", "pure", "writes nothing"),
    Row("aten.add(x, y)", "pure", "writes nothing"),
    Row("F.relu(x)", "pure", "torch.nn.functional.relu returns a value"),
    Row("F.relu(x, inplace=False)", "pure", "returns a value"),
    Row("F.gelu(x)", "pure", "writes nothing"),
    Row("F.max_pool2d(image, 2)", "pure", "returns a value"),
    Row("F.normalize(x)", "pure", "returns a value"),
    Row("F.embedding(index, x)", "pure", "returns a value"),
    Row("F.dropout(x, training=False)", "pure", "returns a value"),
    Row("F.dropout(x, 0.5, False, True)", "pure", "returns a value"),
    Row("F.dropout(x, 0.0)", "pure", "returns a value"),
    Row("F.dropout(x, p=0)", "pure", "returns a value"),
    Row("F.rrelu(x)", "pure", "returns a value"),
    Row("torch.dropout(x, 0.5, False)", "pure", "writes nothing"),
    Row("aten.dropout.default(x, 0.0, True)", "pure", "writes nothing"),
    Row(
        "F.scaled_dot_product_attention(image, image, image)",
        "pure",
        "writes nothing",
    ),
    Row("F.batch_norm(x, mean, var)", "pure", "returns a value"),
    Row("F.batch_norm(x, None, None, training=True)", "pure", "a value"),
    Row("F.instance_norm(image)", "pure", "returns a value"),
    Row(
        "aten.native_batch_norm(x, None, None, mean, var, False, 0.1, 1e-5)",
        "pure",
        "writes nothing",
    ),
    Row("operator.add(x, 1)", "pure", "operator.add returns a value"),
    Row("operator.getitem(x, 0)", "pure", "returns a value"),
    Row("operator.and_(flag, flag)", "pure", "returns a value"),
    Row("math.sqrt(4.0)", "pure", "math.sqrt returns a value"),
    Row("len(items)", "pure", "builtins.len returns a value"),
    Row("getattr(x, 'shape')", "pure", "builtins.getattr returns a value"),
    Row("fxt.double(x)", "pure", "fx_effect_tests::double writes nothing"),
    Row("torch.Tensor.add(x, 1)", "pure", "writes nothing"),
    Row("x.relu()", "pure", "aten::relu writes nothing"),
    Row("x.view(-1)", "pure", "writes nothing"),
    Row("x.sort()", "pure", "aten::sort writes nothing"),
    Row("x.size()", "pure", "writes nothing"),
    Row("x.__add__(1)", "pure", "returns a value"),
    Row("x.tolist()", "pure", "returns a value"),
    Row("x.double()", "pure", "returns a value"),
    Row("self.linear(x)", "pure", "Linear changes nothing"),
    Row("self.relu(x)", "pure", "ReLU changes nothing"),
    Row("self.dropout_eval(x)", "pure", "Dropout changes nothing"),
    Row("self.dropout_zero(x)", "pure", "Dropout changes nothing"),
    Row("self.batch_norm_eval(x)", "pure", "BatchNorm1d changes nothing"),
    Row("self.batch_norm_plain(x)", "pure", "BatchNorm1d changes nothing"),
    Row("self.instance_norm_plain(image)", "pure", "changes nothing"),
    Row("self.gru(rnn)", "pure", "GRU changes nothing"),
    Row("self.attention_plain(rnn, rnn, rnn)", "pure", "changes nothing"),
    Row("self.encoder_eval(rnn)", "pure", "changes nothing"),
    Row("self.sequence_eval(x)", "pure", "Sequential changes nothing"),
    Row("self.embedding_plain(index)", "pure", "changes nothing"),
    Row("self.weight_norm(x)", "pure", "changes nothing"),
    Row("self.traced(x)", "pure", "nothing in the graph of GraphModule"),
]

UNKNOWN = [
    Row("user_function(log)", "unknown", "nothing is known of"),
    Row("user_neg(x)", "unknown", "nothing is known of"),
    Row("(lambda: 1)()", "unknown", "nothing is known of"),
    Row("disguised(x)", "unknown", "nothing is known of torch.nn.functional"),
    Row("partial(x)", "unknown", "nothing is known of functools.partial"),
    Row("list(iterator)", "unknown", "nothing is known of builtins.list"),
    Row("operator.contains(iterator, 2)", "unknown", "exhaust an iterator"),
    Row("queue.put(1)", "unknown", "what may be no tensor"),
    Row("words.add('b')", "unknown", "what may be no tensor"),
    Row("items.sort()", "unknown", "what may be no tensor"),
    Row("box.method()", "unknown", "tensors have no method `method`"),
    Row("table.get('a')", "unknown", "tensors have no method `get`"),
    Row("x.frobnicate()", "unknown", "tensors have no method", runs=False),
    Row("operator.methodcaller('relu_')(x)", "unknown", "nothing is known"),
    Row("operator.call(user_function, log)", "unknown", "nothing is known"),
    Row("torch.autograd.grad(loss, leaf)", "unknown", "nothing is known"),
    Row(
        "torch.ops.higher_order.cond(True, user_function, user_function, ())",
        "unknown",
        "runs what it is given",
        runs=False,
    ),
    Row("self.custom(x)", "unknown", "Custom is not of torch.nn"),
    Row("self.sequence_custom(x)", "unknown", "0: Custom is not of torch.nn"),
    Row("self.drawing(x)", "unknown", "Drawing is not of torch.nn"),
    Row("self.weight_norm_custom(x)", "unknown", "is not of torch.nn"),
    Row("self.activation(rnn)", "unknown", "calls its `activation`"),
    Row("self.hooked(x)", "unknown", "Linear has hooks"),
    Row("self.backward_hooked(x)", "unknown", "Linear has hooks"),
    Row("self.traced_hooked(x)", "unknown", "has hooks"),
    Row("self.traced_edited(z)", "unknown", "forward of its own"),
    Row("self.own_forward(x)", "unknown", "has a forward of its own"),
    Row("self.traced_unknown(x)", "unknown", "nothing is known of"),
    Row("self.missing(x)", "unknown", "'missing' leads nowhere", runs=False),
    Row("self.value(x)", "unknown", "not of torch.nn", runs=False),
]

BY_KEYWORD = [
    # A user's function, but these keywords mean one thing everywhere.
    Row("user_add(x, 1, out=y)", "impure", "writes into what `out=` names"),
    Row("user_relu(z, inplace=True)", "impure", "`inplace=True` writes into"),
]

ROWS = [*IMPURE, *BY_KEYWORD, *PURE, *UNKNOWN]
