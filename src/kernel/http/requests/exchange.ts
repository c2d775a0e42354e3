import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import type { BriefMap } from '../../brief-map.ts';
import type { Clock } from '../../clock.ts';
import type { Logger } from '../../observability/index.ts';
import { parseCookies } from '../cookies.ts';
import type { AuthenticationContext, Requester } from '../requester.ts';
import type { Authenticate } from '../routing/route.ts';
import type { ParsedQuery } from '../routing/route-table.ts';
import type { UnparsedBody } from './body-reader.ts';
import { clientAddress, isSecure } from './client-address.ts';

/** The dependencies and settings that all requests of one listener share. */
export interface ListenerContext {
  readonly log: Logger;
  readonly clock: Clock;
  /** Whether the address of the client is taken from `X-Forwarded-For`. */
  readonly forwarded: boolean;
  /** Lower-case name of the header that contains the request id. */
  readonly requestIdHeader: string | undefined;
  /** Exchanges whose `signal` is in use; they are aborted when the server stops. */
  readonly watched: BriefMap<number, Exchange>;
}

let exchangeCount = 0;

/**
 * One request and its response, as handlers and the authenticator see it. Members that few handlers use
 * (signal, logger, address) are created on first use.
 */
export class Exchange implements AuthenticationContext {
  readonly raw: IncomingMessage;
  readonly response: ServerResponse;
  readonly params: Readonly<Record<string, string>>;
  /** The query before its conversion and its check. */
  readonly rawQuery: ParsedQuery;
  /** Start of the request, in milliseconds of the monotonic clock. */
  readonly started: number;
  /** The query, converted and checked by the schema of the route. */
  query: unknown;
  body: unknown;
  /** The body of a request by another server: verified, but not parsed yet. */
  unparsedBody: UnparsedBody | undefined;
  requester: Requester | undefined;
  authenticate: Authenticate | undefined;
  /** Name of the server that has signed the request. */
  origin: string | undefined;
  /** Whether users with a locked account may call the route. */
  allowLocked = false;
  /** Whether the route accepts access tokens that have expired. */
  allowExpired = false;
  /** Whether application services act as themselves, whatever `user_id` and `device_id` the query contains. */
  ignoreAssertedUser = false;
  /** The unparsed body, for routes with the body mode `stream`. */
  stream: Readable | undefined;
  /** Id of the trace that the request belongs to, where traces are enabled. */
  traceId: string | undefined;
  readonly listener: ListenerContext;
  readonly #number = ++exchangeCount;
  #controller: AbortController | undefined;
  #log: Logger | undefined;

  constructor(
    listener: ListenerContext,
    raw: IncomingMessage,
    response: ServerResponse,
    params: Readonly<Record<string, string>>,
    query: ParsedQuery,
  ) {
    this.listener = listener;
    this.raw = raw;
    this.response = response;
    this.params = params;
    this.rawQuery = query;
    this.started = listener.clock.monotonic();
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
    return clientAddress(this.raw, this.listener.forwarded);
  }

  get isSecure(): boolean {
    return isSecure(this.raw, this.listener.forwarded);
  }

  get cookies() {
    return parseCookies(this.raw.headers.cookie);
  }

  get assertedUserId(): string | undefined {
    return this.ignoreAssertedUser ? undefined : first(this.rawQuery['user_id']);
  }

  get assertedDeviceId(): string | undefined {
    if (this.ignoreAssertedUser) return undefined;
    return first(this.rawQuery['device_id'] ?? this.rawQuery['org.matrix.msc3202.device_id']);
  }

  /** Request id for the log: the first 128 characters of the configured header, or the method and a number. */
  get id(): string {
    const header = this.listener.requestIdHeader;
    const given = header === undefined ? undefined : this.raw.headers[header];
    return typeof given === 'string' && given !== '' ? given.slice(0, 128) : `${this.method}-${this.#number}`;
  }

  get log(): Logger {
    this.#log ??= this.listener.log.child({
      request: this.id,
      ...(this.traceId !== undefined && { trace: this.traceId }),
    });
    return this.#log;
  }

  /** Aborts when the client disconnects or the server stops. */
  get signal(): AbortSignal {
    this.#controller ??= this.#watch();
    return this.#controller.signal;
  }

  /** Resolves when the exchange is over: true when the whole response was sent. */
  get wasSent(): Promise<boolean> {
    const { response } = this;
    if (response.closed || response.destroyed) return Promise.resolve(response.writableFinished);
    return new Promise((resolve) => response.once('close', () => resolve(response.writableFinished)));
  }

  /** Aborts the signal if it is in use. */
  abort(reason: string): void {
    this.#controller?.abort(new Error(reason));
  }

  #watch(): AbortController {
    const controller = new AbortController();
    const { watched } = this.listener;
    // The 'close' event has been emitted already, and is not emitted again.
    if (this.response.closed || this.response.destroyed) {
      controller.abort(new Error('The client has disconnected'));
      return controller;
    }
    watched.set(this.#number, this);
    this.response.once('close', () => {
      watched.delete(this.#number);
      if (!this.response.writableFinished) this.abort('The client has disconnected');
    });
    return controller;
  }
}

const first = (value: string | string[] | undefined) => (Array.isArray(value) ? value[0] : value);
