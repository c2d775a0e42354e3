import { hash } from 'node:crypto';
import type { CacheRegistry } from '../../kernel/caches/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import { type AnyWriter, type Database, type Writer, writerFor } from '../../kernel/database/index.ts';
import type { Requester } from '../../kernel/http/index.ts';
import { KeyedMutex } from '../../kernel/keyed-mutex.ts';
import { type Randomness, randomString } from '../../kernel/randomness.ts';
import {
  badJson,
  forbidden,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  MatrixError,
  tooLarge,
  unrecognized,
} from '../../protocol/index.ts';
import type { AccountLimits } from '../limits.ts';
import { hashToken } from '../sessions/tokens.ts';
import type { AccountTables } from '../tables.ts';
import { Challenge } from './challenge.ts';
import { digestBody, openBody, sealBody } from './sealed-body.ts';
import { SessionBounds, sessionLifetime } from './session-bounds.ts';
import {
  answerInteractiveSession,
  deleteInteractiveSessions,
  deleteInteractiveSessionsBefore,
  deleteInteractiveSessionsOf,
  deleteOldestRegistrations,
  findInteractiveSession,
  type SessionRow,
  saveInteractiveSession,
} from './session-store.ts';
import { type Flows, ProofOfAnotherUser, type Stage, type StageContext, type StageForm } from './stage.ts';

/** A request that needs interactive authentication. */
export interface InteractiveAuthRequest {
  /** The operation and its target, for instance `DELETE /devices/ABC`. */
  readonly operation: string;
  /**
   * The request body: its member `auth` is for the authentication, the rest are the parameters of the
   * operation.
   */
  readonly body: JsonObject;
  readonly requester: Requester | undefined;
  readonly ip: string;
  readonly flows: Flows;
  /** Checks the parameters before the user authenticates. Not called for a repeated request. */
  readonly check?: () => Promise<void>;
}

/** The result of a completed interactive authentication. */
export interface InteractiveAuthResult {
  /** The parameters of the operation, without `auth`. */
  readonly body: JsonObject;
  /** Completed stages to the results of `Stage.verify`. */
  readonly completed: ReadonlyMap<string, JsonValue>;
  /** Hash of the id of the session, under which stages store what they have reserved. */
  readonly idHash: string;
}

export interface InteractiveAuthDeps {
  readonly caches: CacheRegistry;
  readonly database: Database;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly limits: Pick<AccountLimits, 'challenges'>;
}

interface Progress {
  readonly session: string;
  readonly idHash: string;
  /** Whether the session is in the database. */
  isStored: boolean;
  readonly createdAt: number;
  readonly body: JsonObject;
  readonly completed: Map<string, JsonValue>;
}

/** Sessions that are begun, and milliseconds, between two deletions of sessions that are too old or too many. */
const [sessionsPerCleanup, cleanupInterval] = [100, 3_600_000];

/** Maximum bytes of the parameters of a user's request, and of a registration: they are stored. */
const [maxBodyBytes, maxRegistrationBytes] = [65_536, 4_096];

/** The operation of registrations. */
export const registrationOperation = 'POST /register';

/** Maximum number of stored sessions of registrations; older ones are deleted. */
const maxRegistrations = 10_000;

/**
 * User-interactive authentication: a client repeats its request with one more stage of a flow each time,
 * until a flow is complete. A session is valid for one operation with the same parameters, by the same user. The
 * operation is carried out once; a repeated request gets its result again.
 * Source: client-server API, "User-Interactive Authentication API".
 */
export class InteractiveAuth {
  readonly #deps: InteractiveAuthDeps;
  readonly #stages: ReadonlyMap<string, Stage>;
  readonly #bounds: SessionBounds;
  #lastCleanup = 0;
  #begunSinceCleanup = 0;
  /** By session id. */
  readonly #running = new KeyedMutex();
  /** By the type of a stage with `store`. */
  readonly #storing = new KeyedMutex();

  constructor(deps: InteractiveAuthDeps, stages: readonly Stage[]) {
    this.#deps = deps;
    this.#bounds = new SessionBounds(deps.limits.challenges, deps.caches);
    this.#stages = new Map(stages.map((stage) => [stage.type, stage]));
  }

  /**
   * Carries out an operation when a flow is complete, and returns its result, which must be JSON. Clients repeat
   * requests whose response they have missed: a request with a session whose operation has been carried out gets the
   * same result. A session is stored when a stage remains; each new one is counted by its user, or by the address of
   * the client.
   * @throws Challenge (401) with the stages that remain; MatrixError M_FORBIDDEN when the session is for
   * another operation or the proof is of another user, M_LIMIT_EXCEEDED, M_TOO_LARGE; what the operation throws
   */
  run<T>(
    request: InteractiveAuthRequest,
    operation: (authenticated: InteractiveAuthResult) => Promise<T>,
  ): Promise<T> {
    const { auth } = request.body;
    const session = isJsonObject(auth) ? auth['session'] : undefined;
    const work = () => this.#run(request, operation);
    return typeof session === 'string' ? this.#running.run(session, work) : work();
  }

  async #run<T>(
    request: InteractiveAuthRequest,
    operation: (authenticated: InteractiveAuthResult) => Promise<T>,
  ): Promise<T> {
    const { auth, ...parameters } = request.body;
    const session = isJsonObject(auth) ? auth['session'] : undefined;
    const row = typeof session === 'string' ? await this.#find(session) : undefined;
    if (row?.answered === 1) return resultIn(row, request, parameters, String(session)) as T;
    await request.check?.();
    if (auth === undefined || auth === null) {
      throw await this.#challenge(request, this.#begin(parameters));
    }
    if (!isJsonObject(auth)) throw badJson("'auth' must be an object");
    const progress = await this.#resume(request, parameters, auth['session'] ?? undefined, row);
    const type = auth['type'];
    if (typeof type === 'string') await this.#attempt(request, progress, type, auth);
    if (!request.flows.some((stages) => stages.every((stage) => progress.completed.has(stage)))) {
      throw await this.#challenge(request, progress);
    }
    if (!progress.isStored) return operation(progress);
    return this.#carryOut(progress, operation);
  }

  /** Stores the result in the session; a session whose operation fails cannot be continued. */
  async #carryOut<T>(
    progress: Progress,
    operation: (authenticated: InteractiveAuthResult) => Promise<T>,
  ): Promise<T> {
    const { idHash } = progress;
    try {
      const result = await operation(progress);
      const sealed = sealBody({ result: result as JsonValue }, progress.session, this.#deps.randomness);
      await this.#write((writer) => answerInteractiveSession(writer, idHash, sealed));
      return result;
    } catch (error) {
      await this.#write((writer) => deleteInteractiveSessions(writer, [idHash]));
      throw error;
    }
  }

  /** Whether the stage can be completed on this server. */
  offers(stage: string): boolean {
    return this.#stages.has(stage);
  }

  /** Marks a stage as completed that the user went through elsewhere, for instance at another server. */
  complete(session: string, stage: string, result: JsonValue): Promise<void> {
    return this.#running.run(session, async () => {
      await this.#findUnanswered(session);
      await this.#addCompleted(session, stage, result);
    });
  }

  /**
   * Returns the form of a stage, for a session.
   * @throws MatrixError M_UNRECOGNIZED for a stage without a form, M_FORBIDDEN for an unknown session
   */
  async formOf(
    type: string,
    session: string,
    ip: string,
  ): Promise<{ form: StageForm; context: StageContext }> {
    const form = this.#stages.get(type)?.form;
    if (form === undefined) throw unrecognized('Unknown authentication stage');
    return { form, context: contextOf(await this.#findUnanswered(session), session, ip) };
  }

  /**
   * Attempts a stage with what the user has entered on a page. The client carries out the operation afterwards.
   * @throws MatrixError M_FORBIDDEN for an unknown session; what the stage throws
   */
  attempt(session: string, type: string, auth: JsonObject, ip: string): Promise<void> {
    return this.#running.run(session, async () => {
      const stage = this.#stages.get(type);
      if (stage === undefined) throw unrecognized('Unknown authentication stage');
      const row = await this.#findUnanswered(session);
      const result = await stage.verify(auth, contextOf(row, session, ip));
      await this.#storing.run(type, () => this.#addCompleted(session, type, result));
    });
  }

  /** @throws MatrixError M_FORBIDDEN when the session does not exist, has expired, or its operation was carried out */
  async #findUnanswered(session: string): Promise<SessionRow> {
    const row = await this.#find(session);
    if (row === undefined || row.answered === 1) throw forbidden('Unknown authentication session');
    return row;
  }

  async #addCompleted(session: string, type: string, result: JsonValue): Promise<void> {
    const idHash = hashToken(session);
    await this.#write(async (writer) => {
      const row = await findInteractiveSession(writer, idHash);
      if (row === undefined) throw forbidden('Unknown authentication session');
      const completed = { ...(JSON.parse(row.completed) as JsonObject), [type]: result };
      await saveInteractiveSession(writer, { ...row, completed: JSON.stringify(completed) });
      await this.#stages.get(type)?.store?.(writer, idHash, result);
    });
  }

  /** Deletes all sessions of a user, inside the caller's transaction. */
  forgetUser(writer: AnyWriter, userId: string): Promise<void> {
    return deleteInteractiveSessionsOf(writerFor<AccountTables>(writer), userId);
  }

  #begin(body: JsonObject): Progress {
    const session = randomString(this.#deps.randomness, 24);
    const createdAt = this.#deps.clock.now();
    const idHash = hashToken(session);
    return { session, idHash, isStored: false, createdAt, body, completed: new Map() };
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
  ): Promise<Progress> {
    if (session === undefined) return this.#begin(parameters);
    if (typeof session !== 'string') throw badJson("'auth.session' must be a string");
    if (row === undefined) {
      const unknown = forbidden('Unknown authentication session');
      throw await this.#challenge(request, this.#begin(parameters), unknown);
    }
    checkOperation(row, request);
    const completed = new Map(Object.entries(JSON.parse(row.completed) as Record<string, JsonValue>));
    const body = openBody(row.sealed_body, session);
    const stored = { session, idHash: row.id_hash, isStored: true, createdAt: row.created_at };
    const progress = { ...stored, body, completed };
    if (isSameBody(row, parameters)) return progress;
    if (completed.size > 0) throw changedParameters();
    return { ...progress, body: parameters };
  }

  /** Returns a stored session that has not expired. */
  async #find(session: string): Promise<SessionRow | undefined> {
    const row = await findInteractiveSession(this.#deps.database.reader<AccountTables>(), hashToken(session));
    const isExpired = row !== undefined && row.created_at + sessionLifetime < this.#deps.clock.now();
    return isExpired ? undefined : row;
  }

  async #attempt(
    request: InteractiveAuthRequest,
    progress: Progress,
    type: string,
    auth: JsonObject,
  ): Promise<void> {
    const stage = request.flows.flat().includes(type) ? this.#stages.get(type) : undefined;
    if (stage === undefined) {
      const unknown = new MatrixError(401, 'M_UNRECOGNIZED', 'Unknown authentication stage');
      throw await this.#challenge(request, progress, unknown);
    }
    const { requester, ip } = request;
    const isRegistration = request.operation === registrationOperation;
    try {
      const result = await stage.verify(auth, {
        requester,
        ip,
        session: progress.session,
        isRegistration,
      });
      if (progress.isStored || stage.store) await this.#saveCompleted(request, progress, stage, result);
      progress.completed.set(type, result);
    } catch (error) {
      if (!(error instanceof MatrixError) || error.status === 429 || error.status >= 500) throw error;
      if (error instanceof ProofOfAnotherUser) throw error;
      throw await this.#challenge(request, progress, error);
    }
  }

  /** Stores the session with one more completed stage. @throws what `Stage.store` throws */
  async #saveCompleted(
    request: InteractiveAuthRequest,
    progress: Progress,
    stage: Stage,
    result: JsonValue,
  ): Promise<void> {
    const completed = new Map(progress.completed).set(stage.type, result);
    const { store } = stage;
    if (store === undefined) await this.#save(request, { ...progress, completed });
    else {
      // Stages that count something change the same rows, so sessions take turns.
      await this.#storing.run(stage.type, () =>
        this.#save(request, { ...progress, completed }, (writer) => store(writer, progress.idHash, result)),
      );
    }
    progress.isStored = true;
  }

  /** Returns the response that asks for the remaining stages, after storing a new session. */
  async #challenge(
    request: InteractiveAuthRequest,
    progress: Progress,
    failure?: MatrixError,
  ): Promise<Challenge> {
    if (!progress.isStored) await this.#save(request, progress);
    const params: Record<string, JsonObject> = {};
    for (const type of new Set(request.flows.flat())) {
      const param = this.#stages.get(type)?.params?.();
      if (param !== undefined) params[type] = param;
    }
    const flows = request.flows.map((stages) => ({ stages }));
    const completed = [...progress.completed.keys()];
    return new Challenge({ flows, params, session: progress.session, completed }, failure);
  }

  /** @param more runs in the same transaction */
  async #save(
    { requester, ip, operation }: InteractiveAuthRequest,
    progress: Progress,
    more?: (writer: AnyWriter) => Promise<void>,
  ): Promise<void> {
    const { randomness } = this.#deps;
    const sealed_body = sealBody(progress.body, progress.session, randomness);
    const maxBytes = requester === undefined ? maxRegistrationBytes : maxBodyBytes;
    if (sealed_body.length > maxBytes) throw tooLarge('The request is too large');
    const { idHash: id_hash } = progress;
    const surplus = progress.isStored ? [] : this.#bounds.begin(requester?.userId ?? ip, id_hash);
    const row = {
      id_hash,
      user_id: requester?.userId ?? null,
      created_at: progress.createdAt,
      operation: digestOperation(operation),
      body_digest: digestBody(progress.body),
      sealed_body,
      completed: JSON.stringify(Object.fromEntries(progress.completed)),
      answered: 0,
    };
    const isCleanupDue = !progress.isStored && this.#countTowardsCleanup();
    await this.#write(async (writer) => {
      if (isCleanupDue) await this.#cleanUp(writer);
      if (surplus.length > 0) await deleteInteractiveSessions(writer, surplus);
      await saveInteractiveSession(writer, row);
      await more?.(writer);
    });
  }

  /** Counts a new session. @returns whether old sessions are to be deleted */
  #countTowardsCleanup(): boolean {
    const now = this.#deps.clock.now();
    this.#begunSinceCleanup += 1;
    const isDue = now - this.#lastCleanup > cleanupInterval || this.#begunSinceCleanup >= sessionsPerCleanup;
    if (isDue) [this.#lastCleanup, this.#begunSinceCleanup] = [now, 0];
    return isDue;
  }

  async #cleanUp(writer: Writer<AccountTables>): Promise<void> {
    await deleteInteractiveSessionsBefore(writer, this.#deps.clock.now() - sessionLifetime);
    await deleteOldestRegistrations(writer, maxRegistrations);
  }

  #write<T>(work: (writer: Writer<AccountTables>) => Promise<T>): Promise<T> {
    return this.#deps.database.transaction<AccountTables, T>(work);
  }
}

const contextOf = (row: SessionRow, session: string, ip: string): StageContext => ({
  requester: row.user_id === null ? undefined : { userId: row.user_id },
  ip,
  session,
  isRegistration: row.operation === digestOperation(registrationOperation),
});

/** Returns the result of an operation that has been carried out. @throws MatrixError M_FORBIDDEN */
function resultIn(
  row: SessionRow,
  request: InteractiveAuthRequest,
  parameters: JsonObject,
  session: string,
): JsonValue | undefined {
  checkOperation(row, request);
  if (!isSameBody(row, parameters)) throw changedParameters();
  return openBody(row.sealed_body, session)['result'];
}

function checkOperation(row: SessionRow, { operation, requester }: InteractiveAuthRequest): void {
  if (row.operation !== digestOperation(operation) || row.user_id !== (requester?.userId ?? null)) {
    throw forbidden('This authentication session is for another operation');
  }
}

/** Sessions outlive the devices that an operation names. */
const digestOperation = (operation: string) => hash('sha256', operation, 'base64url');

/** A request may leave out the parameters of its session. */
const isSameBody = (row: SessionRow, parameters: JsonObject) =>
  Object.keys(parameters).length === 0 || digestBody(parameters) === row.body_digest;

const changedParameters = () =>
  forbidden('The request parameters have changed since the authentication session began');
