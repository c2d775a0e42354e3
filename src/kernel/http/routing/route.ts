import type { Static, TSchema } from 'typebox';
import type { Logger } from '../../observability/logger.ts';
import type { Requester } from '../requests/requester.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

/**
 * Who may call a route:
 * - `none`: every client; the token is not looked at;
 * - `optional`: every client; a token, when there is one, must be good;
 * - `on-demand`: every client; a token is looked at only when the handler calls `request.authenticate()`;
 * - `user`: a logged-in user, guests not (`M_GUEST_ACCESS_FORBIDDEN`);
 * - `guest`: a logged-in user or guest;
 * - `admin`: a server administrator;
 * - `server`: another homeserver, by its signature (X-Matrix);
 * - `appservice`: an application service by its own token.
 */
export type Auth = 'none' | 'optional' | 'on-demand' | 'user' | 'guest' | 'admin' | 'server' | 'appservice';

/** A route as data. Paths are written in the documents' spelling: `/_proto/client/v3/rooms/:roomId/join`. */
export interface RouteContract {
  /** The specification's `operationId`; absent for what the specification does not know. */
  readonly operationId?: string;
  readonly method: Method;
  /** One path, or several that mean the same (`r0` and `v3`). Parameters as `:name`, the rest as `*`. */
  readonly path: string | readonly string[];
  readonly auth: Auth;
  /** Also for users whose account is locked, as logging out is (client-server API, "Account locking"). */
  readonly allowLocked?: boolean;
  /** Not for users whose account is suspended (client-server API, "Account suspension"). */
  readonly refuseSuspended?: boolean;
  /** Query parameters: an object; integers, booleans and arrays are converted, `default`s filled in. */
  readonly query?: TSchema;
  /**
   * The body: JSON, or the fields of a form with `bodyMode: 'form'`. No body stands for `{}` where the schema takes that.
   * Absent: the body is not looked at.
   */
  readonly body?: TSchema;
  /** No body is M_NOT_JSON, although the schema would take `{}`. */
  readonly needsBody?: boolean;
  /** What a 200 looks like. Checked in the tests only. */
  readonly response?: TSchema;
  /** Largest body in bytes, when it is not the listener's usual bound. */
  readonly bodyLimit?: number;
  /**
   * - `json`: JSON, whatever its content type says;
   * - `form`: `application/x-www-form-urlencoded`, converted and checked as `query` is;
   * - `stream`: not parsed but handed on as `request.stream`.
   */
  readonly bodyMode?: 'json' | 'form' | 'stream';
  /** `page`: errors are shown as a page, because a browser makes the request and not a client. */
  readonly errors?: 'json' | 'page';
}

/** The `:name` parameters of a path, decoded. `*` is the rest of the path. */
type ParamNames<P extends string> = P extends `${string}:${infer Name}/${infer Rest}`
  ? Name | ParamNames<Rest>
  : P extends `${string}:${infer Name}`
    ? Name
    : P extends `${string}*`
      ? '*'
      : never;

type FirstPath<P> = P extends readonly [infer First extends string, ...unknown[]] ? First : P & string;

export type Params<C extends RouteContract> = { readonly [N in ParamNames<FirstPath<C['path']>>]: string };

type Part<C extends RouteContract, K extends 'query' | 'body'> = C[K] extends TSchema
  ? Static<C[K]>
  : undefined;

type RequesterOf<A extends Auth> = A extends 'user' | 'guest' | 'admin' | 'appservice'
  ? Requester
  : A extends 'optional'
    ? Requester | undefined
    : undefined;

/**
 * @returns undefined for a request without a token
 * @throws MatrixError M_UNKNOWN_TOKEN and what else the authenticator throws
 */
export type Authenticate = () => Requester | undefined | Promise<Requester | undefined>;

/** What a handler is given: the parts of the request that its contract names, parsed and checked. */
export interface RouteRequest<C extends RouteContract = RouteContract> {
  readonly params: Params<C>;
  readonly query: Part<C, 'query'>;
  readonly body: Part<C, 'body'>;
  readonly requester: RequesterOf<C['auth']>;
  /** Finds out who makes the request; only with `auth: 'on-demand'`. */
  readonly authenticate: C['auth'] extends 'on-demand' ? Authenticate : undefined;
  /** Name of the server that signed the request; only with `auth: 'server'`. */
  readonly origin: C['auth'] extends 'server' ? string : undefined;
  /** Method and URL exactly as they were sent (before the namespace rewrite). */
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Address of the client, as the listener's `x_forwarded` says. */
  readonly ip: string;
  /** Whether the client's own connection uses TLS, as the listener and its reverse proxy say. */
  readonly isSecure: boolean;
  /** Cookies of the request, by name. */
  readonly cookies: Readonly<Record<string, string | undefined>>;
  /** Whether the client's connection took the whole answer; known when the exchange is over. */
  readonly wasSent: Promise<boolean>;
  /** Aborts when the client goes away or the server stops. */
  readonly signal: AbortSignal;
  readonly log: Logger;
  /** The raw body with `bodyMode: 'stream'`. */
  readonly stream: NodeJS.ReadableStream | undefined;
}

/** A value to be serialised as JSON with status 200, or a `Reply`. */
export type Handler<C extends RouteContract> = (request: RouteRequest<C>) => Promise<unknown> | unknown;

export interface Route {
  readonly contract: RouteContract;
  readonly handler: (request: RouteRequest) => Promise<unknown> | unknown;
}

/** The paths of a route: one, or several that mean the same. */
export function pathsOf({ contract: { path } }: Route): readonly string[] {
  return typeof path === 'string' ? [path] : path;
}

/** Joins a contract to its handler. */
export function route<const C extends RouteContract>(contract: C, handler: Handler<C>): Route {
  return { contract, handler: handler as Route['handler'] };
}

/**
 * An answer that is not simply JSON with status 200: another status or headers, text that is serialised already
 * (`content-type` must then be among the headers unless it is JSON), bytes, or a stream.
 */
export class Reply {
  readonly status: number;
  readonly body: string | Uint8Array | NodeJS.ReadableStream | object | undefined;
  /** A list makes one header line of each value, as `Set-Cookie` needs. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>;

  constructor(status: number, body?: Reply['body'], headers: Reply['headers'] = {}) {
    this.status = status;
    this.body = body;
    this.headers = headers;
  }
}
