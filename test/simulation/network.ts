import {
  OutboundError,
  type OutboundHttp,
  requestAborted,
  type Target,
} from '../../src/kernel/outbound/index.ts';
import type { LocalAnswer, LocalRequest } from './local-http.ts';
import type { Dice } from './random.ts';
import type { Scheduler } from './scheduler.ts';
import type { Trace } from './trace.ts';

/** How unreliable the network is: probabilities, and milliseconds. */
export interface NetworkConditions {
  readonly lostRequests: number;
  readonly lostAnswers: number;
  /** Requests that are sent twice; never those with the method POST. */
  readonly duplicates: number;
  /** Maximum transit time of a message; most take far less. */
  readonly maxTransit: number;
}

export const reliableConditions: NetworkConditions = {
  lostRequests: 0,
  lostAnswers: 0,
  duplicates: 0,
  maxTransit: 20,
};

/** A process that listens on the network. */
export interface Host {
  /** @returns `undefined` when the process ends before it has answered */
  answer(request: LocalRequest): Promise<LocalAnswer | undefined>;
}

/** A process that sends requests while it runs. */
export interface Client {
  readonly name: string;
  readonly isAlive: boolean;
  /** Counts an outgoing request. The process may crash before the request. @returns whether the process still runs */
  step(): boolean;
}

type Outgoing = Parameters<OutboundHttp['send']>[1];

const never = new Promise<never>(() => undefined);

/** The network between simulated servers: delays, loses, duplicates and reorders requests and answers. */
export class Network {
  readonly #scheduler: Scheduler;
  readonly #dice: Dice;
  readonly #trace: Trace;
  readonly #hosts = new Map<string, Host>();
  /** Network partitions: servers with different numbers do not reach each other. */
  #sides: ReadonlyMap<string, number> = new Map();
  conditions: NetworkConditions = reliableConditions;
  /** Replaces the answer of a server; by default returns it unchanged. */
  change: (to: string, request: LocalRequest, answer: LocalAnswer) => Promise<LocalAnswer> = async (
    _to,
    _request,
    answer,
  ) => answer;
  /** Private data that a server has sent to another server. */
  readonly leaks: string[] = [];

  constructor(scheduler: Scheduler, dice: Dice, trace: Trace) {
    this.#scheduler = scheduler;
    this.#dice = dice;
    this.#trace = trace;
  }

  listen(name: string, host: Host): void {
    this.#hosts.set(name, host);
  }

  /** Removes a process that no longer listens. */
  leave(name: string, host: Host): void {
    if (this.#hosts.get(name) === host) this.#hosts.delete(name);
  }

  split(sides: ReadonlyMap<string, number>): void {
    this.#sides = sides;
  }

  /** The HTTP client of one process. */
  httpFor(client: Client): OutboundHttp {
    const http: Pick<OutboundHttp, 'send' | 'fetch' | 'close'> = {
      send: async (target, request) => this.#send(client, target, request),
      // There are no well-known documents; a server name is its address.
      fetch: () =>
        Promise.reject(new OutboundError('refused-address', 'The simulated network has no web servers')),
      close: async () => undefined,
    };
    return http as OutboundHttp;
  }

  async #send(client: Client, target: Target, outgoing: Outgoing): Promise<LocalAnswer> {
    if (!client.step()) return never;
    const { method = 'GET', headers = {}, body, timeout, signal } = outgoing;
    if (signal?.aborted) throw requestAborted();
    const request = { method, path: target.path, headers, body: body?.toString() };
    if (request.body?.includes('m.read.private'))
      this.leaks.push(`${client.name} sends a private read receipt`);
    return new Promise((resolve, reject) => {
      const settle = (act: () => void) => {
        if (client.isAlive) act();
        signal?.removeEventListener('abort', onAbort);
        timer.cancel();
      };
      const onAbort = () => settle(() => reject(requestAborted()));
      const timer = this.#scheduler.after(timeout, () =>
        settle(() => reject(new OutboundError('timeout', 'The other server has not answered in time'))),
      );
      signal?.addEventListener('abort', onAbort, { once: true });
      const refuse = () =>
        settle(() => reject(new OutboundError('connection', 'No process listens at this address')));
      const answered = (answer: LocalAnswer) => settle(() => resolve(answer));
      this.#carry(client, target.host, request, { refuse, answered });
      if (this.#dice.chance(this.conditions.duplicates) && method !== 'POST') {
        this.#carry(client, target.host, request, { refuse: () => undefined, answered: () => undefined });
      }
    });
  }

  /** Delivers a request and its answer, or loses one of them. */
  #carry(
    { name: from }: Client,
    to: string,
    request: LocalRequest,
    ends: { refuse(): void; answered(answer: LocalAnswer): void },
  ): void {
    const { conditions } = this;
    const what = `${request.method} ${decodeURIComponent(request.path).replace('/_matrix/federation', '')}`;
    if (this.#dice.chance(conditions.lostRequests)) {
      this.#trace.note(from, `→ ${to} lost: ${what}`);
      return;
    }
    this.#scheduler.after(this.#delay(), () => {
      const host = this.#hosts.get(to);
      if (!host || !this.#reaches(from, to)) {
        this.#trace.note(from, `→ ${to} unreachable: ${what}`);
        ends.refuse();
        return;
      }
      void host.answer(request).then(async (original) => {
        const answer = original && (await this.change(to, request, original));
        if (!answer) {
          this.#trace.note(to, `→ ${from} crashed before it had answered: ${what}`);
          return;
        }
        const isLost = this.#dice.chance(conditions.lostAnswers) || !this.#reaches(from, to);
        const error = answer.status === 200 ? '' : ` ${answer.body.toString().slice(0, 200)}`;
        this.#trace.note(from, `→ ${to} ${answer.status}${isLost ? ' (answer lost)' : ''}: ${what}${error}`);
        if (!isLost) this.#scheduler.after(this.#delay(), () => ends.answered(answer));
      });
    });
  }

  #reaches(from: string, to: string): boolean {
    return (this.#sides.get(from) ?? 0) === (this.#sides.get(to) ?? 0);
  }

  #delay(): number {
    return 1 + Math.floor(this.#dice.skewed(this.conditions.maxTransit));
  }
}
