import type { Static, TSchema } from 'typebox';
import type { Logger } from '../../observability/logger.ts';
import type { LimitedKind } from '../../rate-limits/index.ts';
import type { LongText } from '../long-text.ts';
import type { Requester } from '../requester.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

/**
 * The callers that a route accepts:
 * - `none`: all clients; the token is ignored;
 * - `optional`: all clients; a token, if there is one, must be valid;
 * - `on-demand`: all clients; the token is authenticated only when the handler calls `request.authenticate()`;
 * - `user`: logged-in users, except guests (`M_GUEST_ACCESS_FORBIDDEN`);
 * - `guest`: logged-in users and guests;
 * - `admin`: server administrators;
 * - `server`: other homeservers, by their signature (X-Matrix);
 * - `appservice`: application services, by their own token.
 */
export type Auth = 'none' | 'optional' | 'on-demand' | 'user' | 'guest' | 'admin' | 'server' | 'appservice';

/**
 * A route as data. Paths begin with `/_proto`, which stands for `/_matrix` as well (`namespaces.ts`):
 * `/_proto/client/v3/rooms/:roomId/join`.
 */
export interface RouteContract {
  /**
   * The specification's `operationId`. Routes of the admin API have names that this program chooses; other endpoints
   * outside of the specification have none.
   */
  readonly operationId?: string;
  /**
   * The `operationId` of an endpoint of the specification that does the same. The rules for that `operationId` also
   * apply to this route.
   */
  readonly actsAs?: string;
  readonly method: Method;
  /**
   * One path, or several with the same meaning (`r0` and `v3`). A path begins with `/_proto` where the specification
   * has `/_matrix`; the route answers both prefixes. Parameters are `:name`, the rest of a path is `*`.
   */
  readonly path: string | readonly string[];
  readonly auth: Auth;
  /**
   * Users with a locked account may call the route, for instance to log out (client-server API, "Account locking").
   */
  readonly allowLocked?: boolean;
  /** The route accepts access tokens that have expired: a client logs out with the token that it has. */
  readonly allowExpired?: boolean;
  /**
   * Only with `on-demand`. Application services act as themselves, whatever user the query parameter `user_id` names.
   * Some bridges send this parameter in the request that registers the user, who does not exist yet.
   */
  readonly ignoreAssertedUser?: boolean;
  /** Users with a suspended account are rejected (client-server API, "Account suspension"). */
  readonly refuseSuspended?: boolean;
  /**
   * The schema of the query parameters, an object. Integers, booleans and arrays are converted, and each `default` is
   * filled in.
   */
  readonly query?: TSchema;
  /**
   * The body: JSON, or the fields of a form with `bodyMode: 'form'`. An absent body stands for `{}` where the
   * schema accepts that. Without a schema the body is ignored.
   */
  readonly body?: TSchema;
  /** Rejects an absent body with M_NOT_JSON, also if the schema accepts `{}`. */
  readonly needsBody?: boolean;
  /**
   * Throws when the requester may not make any request of this kind. Is called for requests that fail with status 400:
   * its error replaces their error, so that the requester receives the same error for malformed and for valid requests.
   */
  readonly checkAccess?: AccessCheck;
  /**
   * Throws when the requester has reached a rate limit of the route. Is called before the body is read, so that
   * requests beyond the limit cost little. Counts nothing: the handler counts the requests.
   */
  readonly checkRate?: RateCheck;
  /**
   * Is called when a request fails before its handler is called: because the user may not call the route or has
   * reached a limit, or the request is invalid. `requester` is absent in `request` if the access token is not valid.
   * Must not throw.
   */
  readonly refused?: (request: Omit<RouteRequest, 'query' | 'body'>, error: unknown) => Promise<void>;
  /** The body of a 200 response; checked in the tests only. */
  readonly response?: TSchema;
  /** Maximum bytes of the body, if it differs from the default. */
  readonly bodyLimit?: number;
  /**
   * - `json` (the default): parsed as JSON, whatever the content type;
   * - `form`: `application/x-www-form-urlencoded`, converted and checked like `query`;
   * - `stream`: not parsed, passed on as `request.stream`.
   */
  readonly bodyMode?: 'json' | 'form' | 'stream';
  /**
   * The `GET` changes something, for instance when a user opens a link in a mail. HEAD is then answered without the
   * handler, because programs check links with HEAD.
   */
  readonly getChanges?: boolean;
  /** Bounds how many requests of one user to routes of this kind are answered at the same time. */
  readonly limitedKind?: LimitedKind;
  /** `json` is the default. `page`: errors are shown as an HTML page, for routes that browsers request. */
  readonly errors?: 'json' | 'page';
}

/** Rejects with a MatrixError when the requester may not make any request of this kind. */
export type AccessCheck = (
  requester: Requester,
  params: Readonly<Record<string, string>>,
) => Promise<unknown>;

/** The parts of a request that are known before its body is read. */
export interface UnreadRequest {
  /** Absent for requests of other servers, requests without a token, and routes that read none before their handler. */
  readonly requester: Requester | undefined;
  readonly params: Readonly<Record<string, string>>;
  /** The converted and checked query parameters. */
  readonly query: unknown;
  /** Address of the client. */
  readonly ip: string;
}

/** Throws or rejects with MatrixError M_LIMIT_EXCEEDED when a rate limit of the requester is reached. */
export type RateCheck = (request: UnreadRequest) => Promise<void> | void;

/** The names of the `:name` parameters of a path, and `*` for its rest. */
type ParamNames<P extends string> = P extends `${string}:${infer Name}/${infer Rest}`
  ? Name | ParamNames<Rest>
  : P extends `${string}:${infer Name}`
    ? Name
    : P extends `${string}*`
      ? '*'
      : never;

/** The path of a contract; the first one of several. */
type FirstPath<P> = P extends readonly [infer First extends string, ...unknown[]] ? First : P & string;

/** The path parameters of a contract, by name. */
export type Params<C extends RouteContract> = { readonly [N in ParamNames<FirstPath<C['path']>>]: string };

/** The type of the parsed query or body; `undefined` without a schema. */
type Part<C extends RouteContract, K extends 'query' | 'body'> = C[K] extends TSchema
  ? Static<C[K]>
  : undefined;

/** The type of the requester for a kind of authentication. */
type RequesterOf<A extends Auth> = A extends 'user' | 'guest' | 'admin' | 'appservice'
  ? Requester
  : A extends 'optional'
    ? Requester | undefined
    : undefined;

/**
 * Authenticates the access token of the request.
 * @returns undefined for a request without a token
 * @throws MatrixError M_UNKNOWN_TOKEN and the other errors of the authenticator
 */
export type Authenticate = () => Requester | undefined | Promise<Requester | undefined>;

/** The request that a handler receives, with the parts that its contract declares, parsed and checked. */
export interface RouteRequest<C extends RouteContract = RouteContract> {
  readonly params: Params<C>;
  readonly query: Part<C, 'query'>;
  readonly body: Part<C, 'body'>;
  readonly requester: RequesterOf<C['auth']>;
  /** Authenticates the access token; only with `auth: 'on-demand'`. */
  readonly authenticate: C['auth'] extends 'on-demand' ? Authenticate : undefined;
  /** Name of the server that signed the request; only with `auth: 'server'`. */
  readonly origin: C['auth'] extends 'server' ? string : undefined;
  /** Method and URL exactly as sent. */
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Address of the client or server that sends the request, according to the listener's `x_forwarded`. */
  readonly ip: string;
  /** Whether the client's own connection uses TLS, according to the listener and its reverse proxy. */
  readonly isSecure: boolean;
  /** Cookies of the request, by name. */
  readonly cookies: Readonly<Record<string, string | undefined>>;
  /** Resolves at the end of the exchange, to whether the whole response was sent. */
  readonly wasSent: Promise<boolean>;
  /** Aborts when the client disconnects or the server stops. */
  readonly signal: AbortSignal;
  readonly log: Logger;
  /** The raw body with `bodyMode: 'stream'`. */
  readonly stream: NodeJS.ReadableStream | undefined;
}

/** Returns a value that is sent as JSON with status 200, or a `Reply`. */
export type Handler<C extends RouteContract> = (request: RouteRequest<C>) => Promise<unknown> | unknown;

/** A contract and the handler that fulfils it. */
export interface Route {
  readonly contract: RouteContract;
  readonly handler: (request: RouteRequest) => Promise<unknown> | unknown;
}

/** Returns the paths of a route: one, or several with the same meaning. */
export function pathsOf({ contract: { path } }: Route): readonly string[] {
  return typeof path === 'string' ? [path] : path;
}

/** Joins a contract to its handler. */
export function route<const C extends RouteContract>(contract: C, handler: Handler<C>): Route {
  return { contract, handler: handler as Route['handler'] };
}

/**
 * A response with a status, headers and a body: text that is serialised already (with `content-type` among the headers
 * unless it is JSON), bytes, a stream, a `FilePart`, or any other object, which is sent as JSON.
 */
export class Reply {
  readonly status: number;
  readonly body: string | Uint8Array | LongText | NodeJS.ReadableStream | object | undefined;
  /** A list is sent as one header line per value, as `Set-Cookie` needs. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>;

  constructor(status: number, body?: Reply['body'], headers: Reply['headers'] = {}) {
    this.status = status;
    this.body = body;
    this.headers = headers;
  }
}
