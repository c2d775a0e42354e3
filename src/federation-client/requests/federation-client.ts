import type { Readable } from 'node:stream';
import { type Clock, sleep } from '../../kernel/clock.ts';
import {
  OutboundError,
  type OutboundFailure,
  type OutboundHttp,
  type OutboundResponse,
  requestAborted,
  type Target,
} from '../../kernel/outbound/index.ts';
import { type Randomness, randomFraction } from '../../kernel/randomness.ts';
import { canonicalJson, isServerName, type JsonObject, type SigningKey } from '../../protocol/index.ts';
import type { FederationClientConfig } from '../config.ts';
import type { Destinations } from '../destinations/destinations.ts';
import type { Discovery } from '../discovery/discovery.ts';
import type { Endpoint } from '../discovery/endpoint.ts';
import { spell, spellingsToTry } from '../spelling.ts';
import type { FederationTls } from '../tls.ts';
import type { DomainWhitelist } from './domain-whitelist.ts';
import { FederationError, MalformedResponse, RemoteError, ServerUnavailable } from './errors.ts';
import { readPairResponse, readResponse, remoteError } from './read-response.ts';
import { type FederationRequest, withQuery } from './request.ts';
import { authorize } from './request-signature.ts';
import { ResponseMeasure } from './response-measure.ts';
import { retriesOf, retryDelay } from './retry-delay.ts';

export interface FederationClientDeps {
  readonly http: OutboundHttp;
  readonly tls: FederationTls;
  readonly discovery: Discovery;
  readonly destinations: Destinations;
  readonly whitelist: DomainWhitelist;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly signer: { readonly serverName: string; readonly key: SigningKey };
  readonly options: FederationClientConfig['federation'];
  /** Absent where tracing is disabled. */
  readonly tracing?: OutboundTracing | undefined;
}

/** Records requests to other servers; declared here, supplied where traces are enabled. */
export interface OutboundTracing {
  /** Sends a request by calling `send` with the headers that carry the trace context. */
  sendToServer<T>(
    request: Pick<FederationRequest, 'destination' | 'method' | 'path'>,
    send: (headers: Readonly<Record<string, string>>) => Promise<T>,
  ): Promise<T>;
}

/** Maximum bytes of a response when the request sets no maximum. */
const defaultMaxBody = 16 * 1024 * 1024;

/** Maximum bytes of an error response that are read. */
const errorMaxBody = 64 * 1024;

/** Maximum milliseconds of a request that is sent for a user to a server in backoff. */
const maxTimeoutInBackoff = 10_000;

type Response = OutboundResponse<Readable>;

/** Sends signed requests to other servers. Source: server-server API, "Authentication". */
export class FederationClient {
  readonly #deps: FederationClientDeps;

  constructor(deps: FederationClientDeps) {
    this.#deps = deps;
  }

  /**
   * Sends a request and parses the response; numbers keep their written form.
   * @throws MatrixError M_FORBIDDEN when `federation_domain_whitelist` excludes the server
   * @throws MatrixError M_LIMIT_EXCEEDED when the budget of the request is spent
   * @throws ServerUnavailable, RemoteError, MalformedResponse; OutboundError `aborted` when the caller's signal aborts
   */
  request(request: FederationRequest): Promise<JsonObject> {
    return this.#requestJson(request, readResponse);
  }

  /** Like `request`, for old endpoints that respond `[200, {...}]`. */
  requestPair(request: FederationRequest): Promise<JsonObject> {
    return this.#requestJson(request, readPairResponse);
  }

  /**
   * Like `request`, but returns the body as a stream of any content type. The caller must read or destroy the stream.
   */
  open(request: FederationRequest): Promise<Response> {
    return this.#withRetries(request, async (target, signed) => {
      const response = await this.#deps.http.openTarget(target, signed);
      if (response.status < 400) return response;
      const body = await readStart(response.body, errorMaxBody);
      throw remoteError(request.destination, { ...response, body });
    });
  }

  #requestJson(request: FederationRequest, read: typeof readResponse): Promise<JsonObject> {
    const { http, clock } = this.#deps;
    const { destination, budget } = request;
    return this.#withRetries(request, async (target, signed) => {
      const measure = new ResponseMeasure(request);
      const inspect = (chunk: Buffer) => measure.add(chunk);
      const response = await http.send(target, { ...signed, inspect });
      return read(destination, response, { clock, measure, budget });
    });
  }

  async #withRetries<T>(wanted: FederationRequest, send: Send<T>): Promise<T> {
    const { destinations, clock } = this.#deps;
    const request = await this.#check(wanted);
    const { destination, signal } = request;
    const begunAt = clock.now();
    for (let retry = 0; ; retry++) {
      try {
        const answer = await this.#tracedAttempt(request, send);
        await destinations.recordSuccess(destination);
        return answer;
      } catch (error) {
        // A request that this server aborted shows nothing about the other server.
        if (signal?.aborted) throw abortedBy(error);
        const delay = this.#retryDelay(retry, error, request);
        if (delay === undefined) {
          await this.#recordFailure(error, request, begunAt);
          throw error;
        }
        // The delay that a busy server requests is waited in full. Other waits end when the server is reachable.
        const isBusy = error instanceof RemoteError && error.retryAfter !== undefined;
        const pause = () =>
          isBusy ? sleep(clock, delay, signal) : destinations.waitForRetry(destination, delay, signal);
        await (request.duringRetryDelay?.(pause) ?? pause());
        if (signal?.aborted) throw abortedBy(error);
      }
    }
  }

  /**
   * Checks whether a request may be sent.
   * @returns the request; without retries and with a shorter timeout if it is sent for a user to a server in backoff
   */
  async #check(request: FederationRequest): Promise<FederationRequest> {
    const { destination, ignoreBackoff, isForUser, budget } = request;
    const { whitelist, signer, destinations, options } = this.#deps;
    if (destination === signer.serverName)
      throw new Error('A server must not send federation requests to itself');
    if (!isServerName(destination)) throw new ServerUnavailable(destination);
    whitelist.check(destination);
    budget?.check();
    if (ignoreBackoff) return request;
    const retryAt = await destinations.backoffUntil(destination);
    if (retryAt === undefined) return request;
    if (!isForUser || !(await destinations.tryForUser(destination)))
      throw new ServerUnavailable(destination, { retryAt });
    const timeout = Math.min(request.timeout ?? options.client_timeout, maxTimeoutInBackoff);
    return { ...request, retry: 'none', ignoreBackoff: true, timeout };
  }

  /** Returns the milliseconds before a retry; `undefined` when the request is not retried. */
  #retryDelay(
    retry: number,
    error: unknown,
    { retry: mode = 'short' }: FederationRequest,
  ): number | undefined {
    const { options, randomness } = this.#deps;
    if (mode === 'none' || retry >= retriesOf(mode, options) || !isTransient(error)) return undefined;
    const wanted = error instanceof RemoteError ? error.retryAfter : undefined;
    return retryDelay(mode, retry, options, randomFraction(randomness), wanted);
  }

  /** Updates the backoff of the server after a request has finally failed. */
  async #recordFailure(error: unknown, request: FederationRequest, begunAt: number): Promise<void> {
    const { destinations } = this.#deps;
    if (!(error instanceof FederationError)) return;
    const isFaultOfServer =
      error instanceof ServerUnavailable || (error instanceof RemoteError && error.isServerFault);
    if (!isFaultOfServer) await destinations.recordSuccess(request.destination);
    else if (!request.ignoreBackoff) await destinations.recordFailure(request.destination, begunAt);
  }

  #tracedAttempt<T>(request: FederationRequest, send: Send<T>): Promise<T> {
    const { tracing } = this.#deps;
    if (!tracing) return this.#attempt(request, send);
    return tracing.sendToServer(request, (added) =>
      this.#attempt(request, (target, signed) =>
        send(target, { ...signed, headers: { ...signed.headers, ...added } }),
      ),
    );
  }

  /** Makes one attempt. Tries each spelling of the path that the server may answer. */
  async #attempt<T>(request: FederationRequest, send: Send<T>): Promise<T> {
    const { destination } = request;
    const { destinations } = this.#deps;
    const endpoints = await this.#endpoints(destination);
    const { spelling: known } = await destinations.get(destination);
    let unrecognized: unknown;
    for (const spelling of spellingsToTry(known)) {
      const path = spell(withQuery(request.path, request.query), spelling);
      try {
        const answer = await this.#sendTo(endpoints, path, request, send);
        await destinations.recordSpelling(destination, spelling);
        return answer;
      } catch (error) {
        if (!(error instanceof RemoteError && error.isUnrecognized)) throw error;
        unrecognized ??= error;
      }
    }
    throw unrecognized;
  }

  async #endpoints(destination: string): Promise<readonly Endpoint[]> {
    try {
      return await this.#deps.discovery.endpointsOf(destination);
    } catch (cause) {
      throw new ServerUnavailable(destination, { cause });
    }
  }

  /** Sends the request to the first endpoint that accepts a connection. */
  async #sendTo<T>(
    endpoints: readonly Endpoint[],
    path: string,
    request: FederationRequest,
    send: Send<T>,
  ): Promise<T> {
    const signed = this.#sign(path, request);
    for (const [index, endpoint] of endpoints.entries()) {
      const tls = this.#deps.tls(endpoint.tlsName ?? endpoint.host);
      try {
        return await send({ ...endpoint, tls, path }, signed);
      } catch (error) {
        if (!(error instanceof OutboundError) || error.failure === 'aborted') throw error;
        if (tryNextEndpoint.has(error.failure) && index < endpoints.length - 1) continue;
        throw failureOf(request.destination, error);
      }
    }
    throw new ServerUnavailable(request.destination);
  }

  #sign(path: string, request: FederationRequest): Parameters<OutboundHttp['send']>[1] {
    const { signer, options } = this.#deps;
    const { method, destination, body, bodyText, signal, budget } = request;
    const origin = signer.serverName;
    const content = bodyText ?? (body && canonicalJson(body, 'as written'));
    return {
      method,
      headers: {
        authorization: authorize({ method, uri: path, origin, destination, content }, signer.key),
        ...(content !== undefined && { 'content-type': 'application/json' }),
      },
      ...(content !== undefined && { body: content }),
      timeout: request.timeout ?? options.client_timeout,
      maxBody: Math.min(
        request.maxBody ?? defaultMaxBody,
        budget?.remainingBytes ?? Number.POSITIVE_INFINITY,
      ),
      signal,
    };
  }
}

type Send<T> = (target: Target, signed: Parameters<OutboundHttp['send']>[1]) => Promise<T>;

/** Failures after which another endpoint of the same server is tried. */
const tryNextEndpoint: ReadonlySet<OutboundFailure> = new Set(['connection', 'unknown-host', 'tls']);

function failureOf(destination: string, cause: OutboundError): FederationError {
  const { failure, message } = cause;
  return failure === 'too-large' || failure === 'protocol'
    ? new MalformedResponse(destination, message, { cause })
    : new ServerUnavailable(destination, { cause });
}

/** Returns the error of a request that its caller aborted, whatever the error of the last attempt was. */
function abortedBy(cause: unknown): OutboundError {
  const isAborted = cause instanceof OutboundError && cause.failure === 'aborted';
  return isAborted ? cause : requestAborted(cause);
}

/** Whether the same request may succeed a little later. */
function isTransient(error: unknown): boolean {
  if (error instanceof RemoteError) return error.isServerFault;
  return (
    error instanceof ServerUnavailable && error.cause instanceof OutboundError && error.cause.isTransient
  );
}

/** Reads the beginning of a stream and destroys the rest. */
async function readStart(body: Readable, length: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    chunks.push(chunk as Buffer);
    size += (chunk as Buffer).length;
    if (size > length) break;
  }
  return Buffer.concat(chunks);
}
