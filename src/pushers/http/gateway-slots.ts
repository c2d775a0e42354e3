import { BriefMap } from '../../kernel/brief-map.ts';

/** Maximum number of concurrent requests: to one gateway, of pushers that work, and of pushers that have failed. */
const [maxPerGateway, maxProven, maxUnproven] = [8, 200, 50];

interface Lane {
  free: number;
  readonly waiting: Waiting[];
}

interface Waiting {
  readonly host: string;
  readonly start: () => void;
}

/**
 * Bounds concurrent requests to push gateways. A gateway that does not answer occupies only its own share, and pushers
 * that have failed share a lane of their own, so that they never delay pushers that work.
 */
export class GatewaySlots {
  readonly #running = new BriefMap<string, number>();
  readonly #proven: Lane = { free: maxProven, waiting: [] };
  readonly #unproven: Lane = { free: maxUnproven, waiting: [] };

  /** Runs `task` as soon as there is a slot for its gateway. @param hasFailed whether the pusher's last attempt failed */
  async run<T>(host: string, hasFailed: boolean, task: () => Promise<T>): Promise<T> {
    const lane = hasFailed ? this.#unproven : this.#proven;
    if (this.#canStart(lane, host)) this.#take(lane, host);
    else await new Promise<void>((resolve) => lane.waiting.push({ host, start: resolve }));
    try {
      return await task();
    } finally {
      lane.free++;
      const running = (this.#running.get(host) ?? 1) - 1;
      if (running === 0) this.#running.delete(host);
      else this.#running.set(host, running);
      // The ended request may have been the limit of its gateway, for which requests of both lanes wait.
      this.#startNext(this.#proven);
      this.#startNext(this.#unproven);
    }
  }

  #canStart(lane: Lane, host: string): boolean {
    return lane.free > 0 && (this.#running.get(host) ?? 0) < maxPerGateway;
  }

  #take(lane: Lane, host: string): void {
    lane.free--;
    this.#running.set(host, (this.#running.get(host) ?? 0) + 1);
  }

  #startNext(lane: Lane): void {
    const index = lane.waiting.findIndex(({ host }) => this.#canStart(lane, host));
    const [next] = index === -1 ? [] : lane.waiting.splice(index, 1);
    if (!next) return;
    this.#take(lane, next.host);
    next.start();
  }
}
