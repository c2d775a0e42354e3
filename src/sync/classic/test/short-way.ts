import { PromptAnswers } from '../prompt-answers.ts';

/** Looks on while a server in this process answers syncs: how often the short way, and lets it be closed. */
export class ShortWay {
  /** Answers that were given by it so far. */
  taken = 0;
  isClosed = false;
  readonly #answer = PromptAnswers.prototype.answer;

  constructor() {
    const way = this;
    const answer = this.#answer;
    PromptAnswers.prototype.answer = function (...parameters) {
      if (way.isClosed) return undefined;
      const text = answer.apply(this, parameters);
      if (typeof text === 'string') way.taken++;
      return text;
    };
  }

  /** What is done meanwhile goes the long way. */
  async closedFor<T>(work: () => Promise<T>): Promise<T> {
    this.isClosed = true;
    try {
      return await work();
    } finally {
      this.isClosed = false;
    }
  }

  /** As if nobody had looked on. */
  leave(): void {
    PromptAnswers.prototype.answer = this.#answer;
  }
}
