import type { Requester } from '../../kernel/http/index.ts';
import {
  badJson,
  forbidden,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  MatrixError,
} from '../../protocol/index.ts';
import { type AuthSession, type AuthSessions, digestOperation, type SessionOwner } from './auth-sessions.ts';
import { Challenge } from './challenge.ts';
import { digestBody, openBody } from './sealed-body.ts';
import type { SessionRow } from './session-store.ts';
import { type Flows, ProofOfAnotherUser, registrationOperation, type Stage, type Stages } from './stage.ts';

/** A request that needs interactive authentication. */
export interface InteractiveAuthRequest {
  /** The operation and its target, for instance `DELETE /devices/ABC`. */
  readonly operation: string;
  /**
   * The request body. Its member `auth` is for the authentication; the other members are the parameters of the
   * operation.
   */
  readonly body: JsonObject;
  /** `undefined` when no user is logged in. */
  readonly requester: Requester | undefined;
  /** Address of the client. */
  readonly ip: string;
  readonly flows: Flows;
  /** Checks the parameters before the user authenticates. Not called when the operation has already been carried out. */
  readonly check?: () => Promise<void>;
}

/** The result of a completed interactive authentication. */
export interface InteractiveAuthResult {
  /** The parameters of the operation, without `auth`. */
  readonly body: JsonObject;
  /** Maps the completed stages to the results of `Stage.verify`. */
  readonly completed: ReadonlyMap<string, JsonValue>;
  /** Hash of the id of the session. Stages store their reservations under this hash. */
  readonly idHash: string;
}

/**
 * User-interactive authentication: a client repeats its request with one more stage of a flow each time, until a flow
 * is complete. A session is valid for one operation with the same parameters, by the same user. The operation is
 * carried out once; later requests with the session receive its result again. Source: client-server API,
 * "User-Interactive Authentication API".
 */
export class InteractiveAuth {
  readonly #sessions: AuthSessions;
  readonly #stages: Stages;

  constructor(sessions: AuthSessions, stages: Stages) {
    this.#sessions = sessions;
    this.#stages = stages;
  }

  /**
   * Carries out an operation when a flow is complete, and returns its result, which must be JSON. Clients repeat
   * requests when they have missed the response. If the operation of the session has already been carried out, such a
   * request receives the same result. A session is stored when a stage remains; each new session counts towards the
   * limits of its user, or towards the limits of the client's address when there is no user.
   * @throws Challenge (401) with the stages that remain; MatrixError M_FORBIDDEN when the session is for another
   * operation or other parameters, or the proof authenticates another user, M_BAD_JSON, M_LIMIT_EXCEEDED, M_TOO_LARGE;
   * what `check` and the operation throw
   */
  run<T>(
    request: InteractiveAuthRequest,
    operation: (authenticated: InteractiveAuthResult) => Promise<T>,
  ): Promise<T> {
    const { auth } = request.body;
    const session = isJsonObject(auth) ? auth['session'] : undefined;
    const work = () => this.#run(request, operation);
    return typeof session === 'string' ? this.#sessions.exclusively(session, work) : work();
  }

  async #run<T>(
    request: InteractiveAuthRequest,
    operation: (authenticated: InteractiveAuthResult) => Promise<T>,
  ): Promise<T> {
    const { auth, ...parameters } = request.body;
    const session = isJsonObject(auth) ? auth['session'] : undefined;
    const row = typeof session === 'string' ? await this.#sessions.find(session) : undefined;
    if (row?.answered === 1) return resultIn(row, request, parameters, String(session)) as T;
    await request.check?.();
    if (auth === undefined || auth === null) {
      throw await this.#challenge(request, this.#sessions.begin(parameters));
    }
    if (!isJsonObject(auth)) throw badJson("'auth' must be an object");
    const resumed = await this.#resume(request, parameters, auth['session'] ?? undefined, row);
    const type = auth['type'];
    const isAttempt = typeof type === 'string' && !(resumed.completed.has(type) && namesOnlyStage(auth));
    const progress = isAttempt ? await this.#attempt(request, resumed, type, auth) : resumed;
    if (!request.flows.some((stages) => stages.every((stage) => progress.completed.has(stage)))) {
      throw await this.#challenge(request, progress);
    }
    if (!progress.isStored) return operation(progress);
    return this.#carryOut(progress, operation);
  }

  /** Carries out the operation and stores its result in the session. Deletes the session if the operation fails. */
  async #carryOut<T>(
    progress: AuthSession,
    operation: (authenticated: InteractiveAuthResult) => Promise<T>,
  ): Promise<T> {
    let result: T;
    try {
      result = await operation(progress);
    } catch (error) {
      await this.#sessions.delete(progress);
      throw error;
    }
    await this.#sessions.answer(progress, result as JsonValue);
    return result;
  }

  /** Whether the stage can be completed on this server. */
  offers(stage: string): boolean {
    return this.#stages.has(stage);
  }

  /**
   * Loads the session that the request continues, or begins one. The parameters may change until the first
   * stage is completed.
   */
  async #resume(
    request: InteractiveAuthRequest,
    parameters: JsonObject,
    session: JsonValue | undefined,
    row: SessionRow | undefined,
  ): Promise<AuthSession> {
    if (session === undefined) return this.#sessions.begin(parameters);
    if (typeof session !== 'string') throw badJson("'auth.session' must be a string");
    if (row === undefined) {
      const unknown = forbidden('Unknown authentication session');
      throw await this.#challenge(request, this.#sessions.begin(parameters), unknown);
    }
    checkOperation(row, request);
    const completed = new Map(Object.entries(JSON.parse(row.completed) as Record<string, JsonValue>));
    const body = openBody(row.sealed_body, session);
    const stored = { session, idHash: row.id_hash, isStored: true, createdAt: row.created_at };
    const progress = { ...stored, body, completed };
    if (isSameBody(row, parameters, session)) return progress;
    if (completed.size > 0) throw changedParameters();
    return { ...progress, body: parameters };
  }

  /** Attempts a stage. @returns the session in which the stage is completed */
  async #attempt(
    request: InteractiveAuthRequest,
    progress: AuthSession,
    type: string,
    auth: JsonObject,
  ): Promise<AuthSession> {
    const stage = request.flows.flat().includes(type) ? this.#stages.get(type) : undefined;
    if (stage === undefined) {
      const unknown = new MatrixError(401, 'M_UNRECOGNIZED', 'Unknown authentication stage');
      throw await this.#challenge(request, progress, unknown);
    }
    const { requester, ip } = request;
    const { session } = progress;
    const isRegistration = request.operation === registrationOperation;
    try {
      const result = await stage.verify(auth, { requester, ip, session, isRegistration });
      return await this.#withCompleted(request, progress, stage, result);
    } catch (error) {
      if (!(error instanceof MatrixError) || error.status === 429 || error.status >= 500) throw error;
      if (error instanceof ProofOfAnotherUser) throw error;
      throw await this.#challenge(request, progress, error);
    }
  }

  /**
   * Adds a completed stage to the session, and stores the session if it was stored before or if the stage
   * stores something.
   */
  async #withCompleted(
    request: InteractiveAuthRequest,
    progress: AuthSession,
    stage: Stage,
    result: JsonValue,
  ): Promise<AuthSession> {
    const completed = new Map(progress.completed).set(stage.type, result);
    const next = { ...progress, completed };
    if (!progress.isStored && stage.store === undefined) return next;
    await this.#sessions.saveCompleted(next, ownerOf(request), stage, result);
    return { ...next, isStored: true };
  }

  /** Returns the response that lists the remaining stages, after storing a new session. */
  async #challenge(
    request: InteractiveAuthRequest,
    progress: AuthSession,
    failure?: MatrixError,
  ): Promise<Challenge> {
    if (!progress.isStored) await this.#sessions.save(progress, ownerOf(request));
    const params: Record<string, JsonObject> = {};
    for (const type of new Set(request.flows.flat())) {
      const param = this.#stages.get(type)?.params?.();
      if (param !== undefined) params[type] = param;
    }
    const flows = request.flows.map((stages) => ({ stages }));
    const completed = [...progress.completed.keys()];
    return new Challenge({ flows, params, session: progress.session, completed }, failure);
  }
}

const ownerOf = ({ requester, ip, operation }: InteractiveAuthRequest): SessionOwner => ({
  userId: requester?.userId,
  ip,
  operation,
});

/** Returns the result of an operation that has been carried out. @throws MatrixError M_FORBIDDEN */
function resultIn(
  row: SessionRow,
  request: InteractiveAuthRequest,
  parameters: JsonObject,
  session: string,
): JsonValue | undefined {
  checkOperation(row, request);
  if (!isSameBody(row, parameters, session)) throw changedParameters();
  return openBody(row.sealed_body, session)['result'];
}

function checkOperation(row: SessionRow, { operation, requester }: InteractiveAuthRequest): void {
  if (row.operation !== digestOperation(operation) || row.user_id !== (requester?.userId ?? null)) {
    throw forbidden('This authentication session is for another operation');
  }
}

/** Whether a client only names a stage. Clients do this after the user has completed the stage in a browser. */
const namesOnlyStage = (auth: JsonObject) =>
  Object.keys(auth).every((member) => member === 'type' || member === 'session');

/** Whether a request repeats the parameters of its session, or leaves them out. */
const isSameBody = (row: SessionRow, parameters: JsonObject, session: string) =>
  Object.keys(parameters).length === 0 || digestBody(parameters, session) === row.body_digest;

const changedParameters = () =>
  forbidden('The request parameters have changed since the authentication session began');
