import { MatrixError, suspended, unknown } from '../../../protocol/index.ts';
import { redactUrl } from '../../observability/index.ts';
import type { UserSlots } from '../../rate-limits/index.ts';
import { TimeSlices } from '../../time-slices.ts';
import type { Authenticator, Requester, ServerAdmission, ServerAuthenticator } from '../requester.ts';
import { accessTokenOf, authenticate, type ClientAuth, requireAccess } from '../requests/authentication.ts';
import type { BodyReader, ClientRequest, UnparsedBody } from '../requests/body-reader.ts';
import type { Exchange } from '../requests/exchange.ts';
import { parseForm, requireFormType } from '../requests/form-body.ts';
import { hasBody, limitBody } from '../requests/read-body.ts';
import { BodyChecker, ParameterChecker } from '../requests/validation.ts';
import { discardResult, sendError, sendResult } from '../responses.ts';
import { pathsOf, Reply, type Route, type RouteContract, type RouteRequest } from '../routing/route.ts';

/**
 * Maximum bytes of a client's JSON body unless the route says otherwise: an event of 64 KiB, with each character
 * escaped and spaces between.
 */
const maxClientBodyBytes = 512 * 1024;

/** Maximum bytes of a remote server's body unless the route says otherwise: the size of several events. */
const maxServerBodyBytes = 1024 * 1024;

/** Maximum bytes of a form unless the route says otherwise: large enough for a signed SAML assertion. */
const maxFormBytes = 64 * 1024;

/** Called after every exchange, which is one request and its response. */
export type Observer = (route: Route, exchange: Exchange, milliseconds: number) => void;

/** Records requests; declared here, supplied where traces are enabled. */
export interface RequestTracing {
  /** Answers a request by calling `answer`. */
  serve(route: Route, exchange: Exchange, answer: () => Promise<void>): Promise<void>;
  /** Is called within `answer` when the user or server that makes the request is known. */
  authenticated(exchange: Exchange): void;
}

export interface EndpointDeps {
  readonly bodies: BodyReader;
  readonly slots: UserSlots;
  readonly authenticator: Authenticator;
  readonly serverAuthenticator: ServerAuthenticator | undefined;
  /** Limits concurrent requests of remote servers; absent: all are processed at once. */
  readonly serverAdmission: ServerAdmission | undefined;
  /** Returns milliseconds of a monotonic clock. */
  readonly monotonic: () => number;
  readonly observe: Observer;
  /** Absent where tracing is disabled. */
  readonly tracing?: RequestTracing | undefined;
  /** Called before each request is handled; absent: requests are not counted. */
  readonly began?: ((route: Route) => void) | undefined;
  /** Returns the error for clients when the disk or the database fails; `undefined` for other failures. */
  readonly explainFailure?: ((error: unknown) => MatrixError | undefined) | undefined;
  /** Renders error pages; absent: routes with `errors: 'page'` respond with JSON. */
  readonly errorPage?: ErrorPage | undefined;
}

/**
 * Renders the page of an error.
 * @param requestId identifies the request in the log
 */
export type ErrorPage = (error: MatrixError, requestId: string) => Promise<Reply>;

/** A route that is ready to answer: its compiled schemas, authentication and handler. */
export class Endpoint {
  readonly #route: Route;
  readonly #deps: EndpointDeps;
  readonly #gzip: boolean;
  readonly #query: ParameterChecker | undefined;
  readonly #body: BodyChecker | undefined;
  readonly #form: ParameterChecker | undefined;
  readonly #bodyLimit: number;
  readonly #slices: TimeSlices;

  /** @param gzip whether responses are compressed for clients that accept it */
  constructor(route: Route, gzip: boolean, deps: EndpointDeps) {
    const { contract } = route;
    this.#route = route;
    this.#deps = deps;
    this.#gzip = gzip;
    this.#slices = new TimeSlices({ monotonic: deps.monotonic });
    this.#query = contract.query && new ParameterChecker(contract.query, 'Query parameter');
    if (contract.body) {
      if (contract.bodyMode === 'form') this.#form = new ParameterChecker(contract.body, 'Form field');
      else {
        const options = { isNeeded: contract.needsBody, nullIsAbsent: contract.auth !== 'server' };
        this.#body = new BodyChecker(contract.body, options);
      }
    }
    this.#bodyLimit = contract.bodyLimit ?? defaultBodyLimit(contract);
  }

  /** Answers one request; never rejects. */
  serve(exchange: Exchange): Promise<void> {
    const { tracing } = this.#deps;
    if (tracing) return tracing.serve(this.#route, exchange, () => this.#answer(exchange));
    return this.#answer(exchange);
  }

  /** Answers one request. Awaits only results that are promises, because most requests are short. */
  async #answer(exchange: Exchange): Promise<void> {
    const { response } = exchange;
    this.#deps.began?.(this.#route);
    let finished: (() => void) | undefined;
    let freeSlot: (() => void) | undefined;
    let isHandled = false;
    try {
      const authenticating = this.#authenticate(exchange);
      if (authenticating) await authenticating;
      this.#deps.tracing?.authenticated(exchange);
      if (exchange.origin !== undefined) {
        finished = await this.#deps.serverAdmission?.admit(exchange.origin, exchange.signal);
      }
      const takingSlot = this.#takeSlot(exchange);
      freeSlot = takingSlot instanceof Promise ? await takingSlot : takingSlot;
      // The client may have disconnected while the request waited for its slot.
      if (freeSlot && response.destroyed) return;
      if (this.#query !== undefined) exchange.query = this.#query.check(exchange.rawQuery);
      const checking = this.#route.contract.checkRate?.(exchange);
      if (checking) await checking;
      const reading = this.#read(exchange);
      if (reading) await reading;
      isHandled = true;
      const handling = this.#handle(exchange);
      const result = handling instanceof Promise ? await handling : handling;
      if (response.destroyed) return discardResult(result);
      const sending = sendResult(response, result, this.#gzip && acceptsGzip(exchange), this.#slices);
      if (sending) await sending;
    } catch (failure) {
      const error = this.#mustCheckAccess(failure) ? await this.#refusal(exchange, failure) : failure;
      const { refused } = this.#route.contract;
      if (refused && !isHandled) await refused(exchange as unknown as RouteRequest, error);
      const failing = this.#fail(exchange, error);
      if (failing) await failing;
    } finally {
      finished?.();
      if (freeSlot) freeWhenSent(exchange, freeSlot);
      exchange.unparsedBody?.byteCount.release();
      exchange.stream?.destroy();
      this.#deps.observe(this.#route, exchange, this.#deps.monotonic() - exchange.started);
    }
  }

  /**
   * Takes a slot of the user, which the request holds until it is handled and the response is sent. Application
   * services, which act for many users, need none.
   * @returns a function that frees the slot; a promise of it when the request has to wait; `undefined` without a slot
   */
  #takeSlot({ requester }: Exchange): (() => void) | Promise<() => void> | undefined {
    const { limitedKind } = this.#route.contract;
    if (limitedKind === undefined || requester === undefined || requester.appservice !== undefined) return;
    return this.#deps.slots.take(requester.userId, limitedKind);
  }

  #handle(exchange: Exchange): unknown {
    const { contract, handler } = this.#route;
    if (contract.getChanges && exchange.method === 'HEAD') return new Reply(200);
    return handler(exchange as unknown as RouteRequest);
  }

  #authenticate(exchange: Exchange): Promise<void> | undefined {
    const {
      auth,
      allowLocked = false,
      allowExpired = false,
      ignoreAssertedUser = false,
    } = this.#route.contract;
    if (auth === 'none') return undefined;
    if (auth === 'server') return this.#authenticateServer(exchange);
    exchange.allowLocked = allowLocked;
    exchange.allowExpired = allowExpired;
    if (auth === 'on-demand') {
      exchange.ignoreAssertedUser = ignoreAssertedUser;
      exchange.authenticate = () => this.#authenticateClient(exchange, 'optional');
      return undefined;
    }
    const requester = this.#authenticateClient(exchange, auth);
    if (requester instanceof Promise)
      return requester.then((authenticated) => this.#admit(exchange, auth, authenticated));
    return this.#admit(exchange, auth, requester);
  }

  #authenticateClient(exchange: Exchange, auth: ClientAuth): Requester | undefined | Promise<Requester> {
    const token = accessTokenOf(exchange.headers.authorization, exchange.rawQuery['access_token']);
    return authenticate(this.#deps.authenticator, auth, token, exchange);
  }

  #admit(exchange: Exchange, auth: ClientAuth, requester: Requester | undefined): undefined {
    exchange.requester = requester;
    if (requester !== undefined) requireAccess(requester, auth);
    if (this.#route.contract.refuseSuspended && requester?.isSuspended) throw suspended();
  }

  /**
   * Authenticates a request of another server: checks the header first, then reads the body, which the signature
   * covers.
   */
  async #authenticateServer(exchange: Exchange): Promise<void> {
    const { serverAuthenticator, bodies } = this.#deps;
    if (serverAuthenticator === undefined) {
      throw new MatrixError(401, 'M_UNAUTHORIZED', 'This server does not federate');
    }
    const signature = await serverAuthenticator.readSignature({
      method: exchange.method,
      url: exchange.url,
      authorization: exchange.raw.headersDistinct['authorization'] ?? [],
    });
    const { raw, ip } = exchange;
    const read = await bodies.readSigned({ raw, ip, limit: this.#bodyLimit, signature });
    exchange.body = read.value;
    exchange.unparsedBody = read.unparsed;
    exchange.origin = signature.origin;
  }

  #read(exchange: Exchange): Promise<void> | undefined {
    const { contract } = this.#route;
    if (contract.bodyMode === 'stream') {
      exchange.stream = limitBody(exchange.raw, contract.bodyLimit ?? Number.POSITIVE_INFINITY);
    } else if (this.#form !== undefined) {
      if (hasBody(exchange.raw)) return this.#readForm(exchange, this.#form);
      exchange.body = this.#form.check({});
    } else if (this.#body !== undefined) {
      const { unparsedBody } = exchange;
      if (unparsedBody) return this.#parseBody(exchange, unparsedBody, this.#body);
      if (contract.auth !== 'server' && hasBody(exchange.raw)) return this.#readBody(exchange, this.#body);
      exchange.body = this.#body.check(exchange.body);
    }
    return undefined;
  }

  async #readBody(exchange: Exchange, checker: BodyChecker): Promise<void> {
    exchange.body = checker.check(await this.#deps.bodies.read(this.#clientRequest(exchange)));
  }

  async #parseBody(exchange: Exchange, unparsed: UnparsedBody, checker: BodyChecker): Promise<void> {
    exchange.body = checker.check(await this.#deps.bodies.parse(unparsed));
  }

  #clientRequest({ raw, requester, ip }: Exchange): ClientRequest {
    return { raw, sender: requester?.userId ?? ip, limit: this.#bodyLimit };
  }

  async #readForm(exchange: Exchange, checker: ParameterChecker): Promise<void> {
    requireFormType(exchange.headers['content-type']);
    exchange.body = checker.check(parseForm(await this.#deps.bodies.readForm(this.#clientRequest(exchange))));
  }

  /** Whether the error says that the request is invalid, on a route that says this only to users with access. */
  #mustCheckAccess(error: unknown): boolean {
    const { checkAccess } = this.#route.contract;
    return checkAccess !== undefined && error instanceof MatrixError && error.status === 400;
  }

  /** Returns the error of `checkAccess`, or the given error if access is allowed. */
  async #refusal(exchange: Exchange, invalid: unknown): Promise<unknown> {
    const { requester, params } = exchange;
    if (requester === undefined) return invalid;
    try {
      await this.#route.contract.checkAccess?.(requester, params);
      return invalid;
    } catch (refusal) {
      return refusal;
    }
  }

  #fail(exchange: Exchange, error: unknown): void | Promise<void> {
    if (error instanceof MatrixError) return this.#sendError(exchange, error);
    if (exchange.response.destroyed) return;
    const { method } = exchange;
    const explained = this.#deps.explainFailure?.(error);
    if (explained) {
      const reason = error instanceof Error ? error.message : String(error);
      exchange.log.error(
        { reason, method, url: redactUrl(exchange.url) },
        'Request failed: the disk is full or the database is not available',
      );
      return this.#sendError(exchange, explained);
    }
    const [route] = pathsOf(this.#route);
    exchange.log.error({ err: error, method, route, url: redactUrl(exchange.url) }, 'Request failed');
    return this.#sendError(exchange, unknown(`Internal server error (request ${exchange.id})`));
  }

  #sendError(exchange: Exchange, error: MatrixError): void | Promise<void> {
    const { errorPage } = this.#deps;
    if (this.#route.contract.errors !== 'page' || errorPage === undefined || exchange.response.headersSent) {
      sendError(exchange.response, error);
      return;
    }
    return sendErrorPage(exchange, error, errorPage, this.#slices);
  }
}

/** Frees a slot when the response is sent or its client has disconnected: until then the response takes memory. */
function freeWhenSent(exchange: Exchange, freeSlot: () => void): void {
  // Most responses are sent at once, and need no promise.
  if (exchange.response.writableFinished) freeSlot();
  else void exchange.wasSent.then(freeSlot);
}

/** Sends the page of an error, or JSON if the page cannot be rendered. */
async function sendErrorPage(
  exchange: Exchange,
  error: MatrixError,
  errorPage: ErrorPage,
  slices: TimeSlices,
): Promise<void> {
  try {
    await sendResult(exchange.response, await errorPage(error, exchange.id), false, slices);
  } catch (failure) {
    exchange.log.error({ err: failure }, 'The page of an error could not be rendered');
    sendError(exchange.response, error);
  }
}

function defaultBodyLimit({ auth, bodyMode }: RouteContract): number {
  if (auth === 'server') return maxServerBodyBytes;
  return bodyMode === 'form' ? maxFormBytes : maxClientBodyBytes;
}

const acceptsGzip = (exchange: Exchange) =>
  /(^|[\s,])gzip\s*($|,|;(?!\s*q=0(\.0*)?\s*($|,)))/i.test(String(exchange.headers['accept-encoding'] ?? ''));
