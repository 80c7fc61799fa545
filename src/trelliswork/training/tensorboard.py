"""Loss, score and speed for TensorBoard, in addition to another way of showing progress."""

from __future__ import annotations

from pathlib import Path

from trelliswork.lazy import optional
from trelliswork.training.progress import EpochRecord, Progress, Relay


class TensorBoardProgress(Relay):
    """Hands everything on to `shown`, and writes one point an epoch (of the loss, one a step) to `folder`."""

    def __init__(self, shown: Progress, folder: str | Path) -> None:
        super().__init__(shown)
        self._folder, self._tokens = str(folder), 0
        self._open = optional("torch.utils.tensorboard", "logging to TensorBoard", "tensorboard").SummaryWriter

    def __enter__(self) -> Progress:
        self.writer = self._open(self._folder)
        return super().__enter__()

    def __exit__(self, *exception: object) -> None:
        self.writer.close()
        super().__exit__(*exception)

    def start_epoch(self, epoch: int, n_epochs: int, n_tokens: int) -> None:
        self._tokens = (epoch - 1) * n_tokens
        super().start_epoch(epoch, n_epochs, n_tokens)

    def batch(self, n_tokens: int, loss: float) -> None:
        self._tokens += n_tokens
        if n_tokens:
            self.writer.add_scalar("loss/so far", loss, self._tokens)
        super().batch(n_tokens, loss)

    def epoch(self, record: EpochRecord) -> None:
        values = {"loss/epoch": record.loss, f"dev/{record.metric}": record.score, "tokens/s": record.tokens_per_second}
        for name, value in values.items():
            if value is not None:
                self.writer.add_scalar(name, value, record.epoch)
        super().epoch(record)
