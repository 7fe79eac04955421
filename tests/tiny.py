"""Settings with which a trial of any experiment takes a moment."""

TINY = {
    "core.hidden_size": 8,
    "task.vocab_size": 4,
    "task.length": 5,
    "task.num_held_out": 16,
    "training.iterations": 4,
    "training.batch_size": 4,
    "training.log_interval": 2,
    "training.evaluation_interval": 2,
    "training.checkpoint_interval": 2,
}
