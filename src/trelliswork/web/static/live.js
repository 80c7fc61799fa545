// Questions while somebody types: few, and never an old answer after a new one.

const PAUSE = 130; // milliseconds without a key until the question is asked

export class Live {
  /** `ask(question, signal)` gives a promise; `show(answer, question)` and `fail(error, question)` see the newest alone. */
  constructor(ask, show, fail) {
    [this.ask, this.show, this.fail] = [ask, show, fail];
    this.number = 0;
    this.timer = undefined;
    this.controller = undefined;
    this.isWaiting = false; // whether an answer to the newest question is still to come
  }

  /** Ask after a pause, or at once. */
  request(question, { atOnce = false } = {}) {
    this.cancel();
    const number = this.number;
    const start = () => this.start(question, number);
    if (atOnce) start();
    else this.timer = setTimeout(start, PAUSE);
  }

  /** What is on its way is of no interest any more. */
  cancel() {
    this.number += 1;
    clearTimeout(this.timer);
    this.controller?.abort();
  }

  async start(question, number) {
    this.controller = new AbortController();
    this.isWaiting = true;
    try {
      const answer = await this.ask(question, this.controller.signal);
      if (number === this.number) this.show(answer, question);
    } catch (error) {
      if (number === this.number && error.name !== "AbortError") this.fail(error, question);
    } finally {
      if (number === this.number) this.isWaiting = false;
    }
  }
}
