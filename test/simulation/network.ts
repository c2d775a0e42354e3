import { OutboundError, type OutboundHttp, type Target } from '../../src/kernel/outbound/index.ts';
import type { LocalAnswer, LocalRequest } from './local-http.ts';
import type { Dice } from './random.ts';
import type { Scheduler } from './scheduler.ts';
import type { Trace } from './trace.ts';

/** How bad the network is; probabilities, and milliseconds. */
export interface Weather {
  readonly lostRequests: number;
  readonly lostAnswers: number;
  readonly duplicates: number;
  /** Longest way of a message; most are much quicker. */
  readonly slowest: number;
}

export const fairWeather: Weather = { lostRequests: 0, lostAnswers: 0, duplicates: 0, slowest: 20 };

/** Who listens on the network. */
export interface Host {
  /** @returns `undefined` when the process ends before it has answered */
  answer(request: LocalRequest): Promise<LocalAnswer | undefined>;
}

/** Who sends, as long as the process runs. */
export interface Client {
  readonly name: string;
  readonly isAlive: boolean;
  /** Counts what goes out; the process may end with it. @returns whether it still runs */
  step(): boolean;
}

type Outgoing = Parameters<OutboundHttp['send']>[1];

const never = new Promise<never>(() => undefined);

/** Between servers of a simulation: messages take time, get lost, come twice, overtake each other. */
export class Network {
  readonly #scheduler: Scheduler;
  readonly #dice: Dice;
  readonly #trace: Trace;
  readonly #hosts = new Map<string, Host>();
  /** Servers of different numbers do not reach each other. */
  #sides: ReadonlyMap<string, number> = new Map();
  weather: Weather = fairWeather;
  /** What was sent and is for nobody else. */
  readonly leaks: string[] = [];

  constructor(scheduler: Scheduler, dice: Dice, trace: Trace) {
    this.#scheduler = scheduler;
    this.#dice = dice;
    this.#trace = trace;
  }

  listen(name: string, host: Host): void {
    this.#hosts.set(name, host);
  }

  /** Nobody listens there any more. */
  leave(name: string, host: Host): void {
    if (this.#hosts.get(name) === host) this.#hosts.delete(name);
  }

  split(sides: ReadonlyMap<string, number>): void {
    this.#sides = sides;
  }

  /** The way out of one process. */
  httpFor(client: Client): OutboundHttp {
    const http: Pick<OutboundHttp, 'send' | 'fetch' | 'close'> = {
      send: async (target, request) => this.#send(client, target, request),
      // There are no well-known documents; names lead to their servers.
      fetch: () => Promise.reject(new OutboundError('refused-address', 'There is no web here')),
      close: async () => undefined,
    };
    return http as OutboundHttp;
  }

  async #send(client: Client, target: Target, given: Outgoing): Promise<LocalAnswer> {
    if (!client.step()) return never;
    const { method = 'GET', headers = {}, body, timeout, signal } = given;
    if (signal?.aborted) throw new OutboundError('aborted', 'The request was aborted');
    const request = { method, path: target.path, headers, body: body?.toString() };
    if (request.body?.includes('m.read.private'))
      this.leaks.push(`${client.name} tells what was read in private`);
    return new Promise((resolve, reject) => {
      const settle = (act: () => void) => {
        if (client.isAlive) act();
        signal?.removeEventListener('abort', onAbort);
        timer.cancel();
      };
      const onAbort = () => settle(() => reject(new OutboundError('aborted', 'The request was aborted')));
      const timer = this.#scheduler.after(timeout, () =>
        settle(() => reject(new OutboundError('timeout', 'The other server has not answered in time'))),
      );
      signal?.addEventListener('abort', onAbort, { once: true });
      const refuse = () => settle(() => reject(new OutboundError('connection', 'Nobody listens there')));
      const answered = (answer: LocalAnswer) => settle(() => resolve(answer));
      this.#carry(client, target.host, request, { refuse, answered });
      if (this.#dice.chance(this.weather.duplicates) && method !== 'POST') {
        this.#carry(client, target.host, request, { refuse: () => undefined, answered: () => undefined });
      }
    });
  }

  /** Brings a request there and its answer back, or not. */
  #carry(
    { name: from }: Client,
    to: string,
    request: LocalRequest,
    ends: { refuse(): void; answered(answer: LocalAnswer): void },
  ): void {
    const { weather } = this;
    const what = `${request.method} ${decodeURIComponent(request.path).replace('/_matrix/federation', '')}`;
    if (this.#dice.chance(weather.lostRequests)) {
      this.#trace.note(from, `→ ${to} lost: ${what}`);
      return;
    }
    this.#scheduler.after(this.#delay(), () => {
      const host = this.#hosts.get(to);
      if (!host || !this.#reaches(from, to)) {
        this.#trace.note(from, `→ ${to} out of reach: ${what}`);
        ends.refuse();
        return;
      }
      void host.answer(request).then((answer) => {
        if (!answer) {
          this.#trace.note(to, `→ ${from} ended before it had answered: ${what}`);
          return;
        }
        const isLost = this.#dice.chance(weather.lostAnswers) || !this.#reaches(from, to);
        const size = answer.status === 200 ? '' : ` ${answer.body.toString().slice(0, 200)}`;
        this.#trace.note(from, `→ ${to} ${answer.status}${isLost ? ' (answer lost)' : ''}: ${what}${size}`);
        if (!isLost) this.#scheduler.after(this.#delay(), () => ends.answered(answer));
      });
    });
  }

  #reaches(from: string, to: string): boolean {
    return (this.#sides.get(from) ?? 0) === (this.#sides.get(to) ?? 0);
  }

  #delay(): number {
    return 1 + Math.floor(this.#dice.skewed(this.weather.slowest));
  }
}
