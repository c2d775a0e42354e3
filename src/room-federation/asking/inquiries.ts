import type { Clock } from '../../kernel/clock.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import type { RoomHead } from '../../room-engine/index.ts';
import { Inquiry } from './inquiry.ts';
import type { Patience } from './patience.ts';
import type { RoomServers } from './room-servers.ts';

/** Milliseconds that all questions for one event may take together. */
const longest = 120_000;

/** Opens inquiries, and ends them all when the program stops. */
export class Inquiries {
  readonly #deps: {
    readonly servers: RoomServers;
    readonly patience: Patience;
    readonly clock: Clock;
    readonly log: Logger;
  };
  readonly #closing = new AbortController();

  constructor(parts: {
    readonly servers: RoomServers;
    readonly patience: Patience;
    readonly clock: Clock;
    readonly log: Logger;
  }) {
    this.#deps = parts;
  }

  get closed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Runs `work` with an inquiry of its own. @param first whom to ask first */
  async run<T>(head: RoomHead, first: readonly string[], work: (inquiry: Inquiry) => Promise<T>): Promise<T> {
    const { servers, clock } = this.#deps;
    const { roomId, roomNid, version } = head;
    const toAsk = () => servers.toAsk(head, first);
    const ending = new AbortController();
    const end = () => ending.abort();
    const timer = clock.setTimer(longest, end);
    this.#closing.signal.addEventListener('abort', end, { once: true });
    if (this.closed) end();
    try {
      const { signal } = ending;
      return await work(new Inquiry({ ...this.#deps, roomId, roomNid, version, servers: toAsk, signal }));
    } finally {
      timer.cancel();
      this.#closing.signal.removeEventListener('abort', end);
    }
  }

  close(): void {
    this.#closing.abort();
  }
}
