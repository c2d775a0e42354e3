import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import type { Clock } from '../../clock.ts';
import type { Logger } from '../../observability/index.ts';
import { parseCookies } from '../cookies.ts';
import type { Authenticate } from '../routing/route.ts';
import type { ParsedQuery } from '../routing/route-table.ts';
import { clientAddress, isSecure } from './client-address.ts';
import type { AuthenticationContext, Requester } from './requester.ts';

/** What the exchanges of one listener share. */
export interface ListenerContext {
  readonly log: Logger;
  readonly clock: Clock;
  /** Take the client's address from `X-Forwarded-For`. */
  readonly forwarded: boolean;
  /** Lower-case name of the header that request ids are built on. */
  readonly requestIdHeader: string | undefined;
  /** Exchanges that someone watches the signal of: told when the server stops. */
  readonly watched: Set<Exchange>;
}

let exchanges = 0;

/**
 * One request and its response, as handlers and the authenticator see it. What few handlers ask for (signal, logger,
 * address) is made when it is asked for.
 */
export class Exchange implements AuthenticationContext {
  readonly raw: IncomingMessage;
  readonly response: ServerResponse;
  readonly params: Readonly<Record<string, string>>;
  readonly rawQuery: ParsedQuery;
  readonly started: number;
  query: unknown;
  body: unknown;
  requester: Requester | undefined;
  authenticate: Authenticate | undefined;
  origin: string | undefined;
  allowLocked = false;
  stream: Readable | undefined;
  readonly scope: ListenerContext;
  readonly #number = ++exchanges;
  #controller: AbortController | undefined;
  #log: Logger | undefined;

  constructor(
    scope: ListenerContext,
    raw: IncomingMessage,
    response: ServerResponse,
    params: Readonly<Record<string, string>>,
    query: ParsedQuery,
  ) {
    this.scope = scope;
    this.raw = raw;
    this.response = response;
    this.params = params;
    this.rawQuery = query;
    this.started = scope.clock.monotonic();
  }

  get method(): string {
    return this.raw.method!;
  }

  get url(): string {
    return this.raw.url!;
  }

  get headers(): IncomingMessage['headers'] {
    return this.raw.headers;
  }

  get userAgent(): string | undefined {
    return this.raw.headers['user-agent'];
  }

  get ip(): string {
    return clientAddress(this.raw, this.scope.forwarded);
  }

  get isSecure(): boolean {
    return isSecure(this.raw, this.scope.forwarded);
  }

  get cookies() {
    return parseCookies(this.raw.headers.cookie);
  }

  get assertedUserId(): string | undefined {
    return first(this.rawQuery['user_id']);
  }

  get assertedDeviceId(): string | undefined {
    return first(this.rawQuery['device_id'] ?? this.rawQuery['org.matrix.msc3202.device_id']);
  }

  /** Names this exchange in the logs: the number of the request, or what a proxy in front calls it. */
  get id(): string {
    const header = this.scope.requestIdHeader;
    const given = header === undefined ? undefined : this.raw.headers[header];
    return typeof given === 'string' && given !== '' ? given.slice(0, 128) : `${this.method}-${this.#number}`;
  }

  get log(): Logger {
    this.#log ??= this.scope.log.child({ request: this.id });
    return this.#log;
  }

  /** Aborts when the client goes away or the server stops. */
  get signal(): AbortSignal {
    this.#controller ??= this.#watch();
    return this.#controller.signal;
  }

  /** Whether the client's connection took the whole answer; known when the exchange is over. */
  get wasSent(): Promise<boolean> {
    const { response } = this;
    if (response.closed || response.destroyed) return Promise.resolve(response.writableFinished);
    return new Promise((resolve) => response.once('close', () => resolve(response.writableFinished)));
  }

  /** Makes the signal abort, if anybody looks at it. */
  abort(reason: string): void {
    this.#controller?.abort(new Error(reason));
  }

  #watch(): AbortController {
    const controller = new AbortController();
    const { watched } = this.scope;
    // Nobody will tell of the end any more.
    if (this.response.closed || this.response.destroyed) {
      controller.abort(new Error('The client went away'));
      return controller;
    }
    watched.add(this);
    this.response.once('close', () => {
      watched.delete(this);
      if (!this.response.writableFinished) this.abort('The client went away');
    });
    return controller;
  }
}

const first = (value: string | string[] | undefined) => (Array.isArray(value) ? value[0] : value);
