import type { Clock } from '../../kernel/clock.ts';
import { type AnyWriter, type Database, type Writer, writerFor } from '../../kernel/database/index.ts';
import type { Requester } from '../../kernel/http/index.ts';
import { type Randomness, randomString } from '../../kernel/randomness.ts';
import {
  badJson,
  forbidden,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  MatrixError,
  tooLarge,
} from '../../protocol/index.ts';
import { hashToken } from '../sessions/tokens.ts';
import type { AccountTables } from '../tables.ts';
import { Challenge } from './challenge.ts';
import { digestBody, openBody, sealBody } from './sealed-body.ts';
import {
  deleteInteractiveSession,
  deleteInteractiveSessionsBefore,
  deleteInteractiveSessionsOf,
  findInteractiveSession,
  saveInteractiveSession,
} from './session-store.ts';
import type { Flows, Stage } from './stage.ts';

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
}

/** The result of a completed interactive authentication. */
export interface InteractiveAuthResult {
  /** The parameters of the operation, without `auth`. */
  readonly body: JsonObject;
  /** Completed stages to the results of `Stage.verify`. */
  readonly completed: ReadonlyMap<string, JsonValue>;
}

export interface InteractiveAuthDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly randomness: Randomness;
}

interface Progress {
  readonly session: string;
  readonly createdAt: number;
  readonly body: JsonObject;
  readonly completed: Map<string, JsonValue>;
}

/** Milliseconds until a session expires, and milliseconds between two deletions of expired sessions. */
const [sessionLifetime, cleanupInterval] = [24 * 3_600_000, 3_600_000];

/** Maximum bytes of a request's parameters, because they are stored before the user is authenticated. */
const maxBodyBytes = 65_536;

/**
 * User-interactive authentication: a client repeats its request with one more stage of a flow each time,
 * until a flow is complete. A session is valid for one operation with the same parameters, by the same user,
 * once.
 * Source: client-server API, "User-Interactive Authentication API".
 */
export class InteractiveAuth {
  readonly #deps: InteractiveAuthDeps;
  readonly #stages: ReadonlyMap<string, Stage>;
  #lastCleanup = 0;

  constructor(deps: InteractiveAuthDeps, stages: readonly Stage[]) {
    this.#deps = deps;
    this.#stages = new Map(stages.map((stage) => [stage.type, stage]));
  }

  /**
   * Resolves when a flow is complete, and deletes the session.
   * @throws Challenge (401) with the stages that remain; MatrixError M_FORBIDDEN when the session is for
   * another operation
   */
  async authenticate(request: InteractiveAuthRequest): Promise<InteractiveAuthResult> {
    const { auth, ...parameters } = request.body;
    if (auth === undefined || auth === null) {
      throw this.#challenge(request, await this.#begin(request, parameters));
    }
    if (!isJsonObject(auth)) throw badJson("'auth' must be an object");
    const progress = await this.#resume(request, parameters, auth);
    const type = auth['type'];
    if (typeof type === 'string') await this.#attempt(request, progress, type, auth);
    if (!request.flows.some((stages) => stages.every((stage) => progress.completed.has(stage)))) {
      throw this.#challenge(request, progress);
    }
    const used = await this.#write((writer) => deleteInteractiveSession(writer, hashToken(progress.session)));
    if (!used) throw forbidden('This authentication session has been used already');
    return { body: progress.body, completed: progress.completed };
  }

  /** Marks a stage as completed that the user went through elsewhere, for instance on a web page. */
  async complete(session: string, stage: string, result: JsonValue): Promise<void> {
    const idHash = hashToken(session);
    await this.#write(async (writer) => {
      const row = await findInteractiveSession(writer, idHash);
      if (row === undefined) throw forbidden('Unknown authentication session');
      const completed = { ...(JSON.parse(row.completed) as JsonObject), [stage]: result };
      await saveInteractiveSession(writer, { ...row, completed: JSON.stringify(completed) });
    });
  }

  /** Deletes all sessions of a user, inside the caller's transaction. */
  forgetUser(writer: AnyWriter, userId: string): Promise<void> {
    return deleteInteractiveSessionsOf(writerFor<AccountTables>(writer), userId);
  }

  async #begin(request: InteractiveAuthRequest, body: JsonObject): Promise<Progress> {
    const session = randomString(this.#deps.randomness, 24);
    const progress = { session, createdAt: this.#deps.clock.now(), body, completed: new Map() };
    await this.#save(request, progress);
    return progress;
  }

  /**
   * Loads the session that the request continues, or begins one. The parameters may change until the first
   * stage is completed.
   */
  async #resume(
    request: InteractiveAuthRequest,
    parameters: JsonObject,
    auth: JsonObject,
  ): Promise<Progress> {
    const session = auth['session'];
    if (session === undefined) return this.#begin(request, parameters);
    if (typeof session !== 'string') throw badJson("'auth.session' must be a string");
    const row = await findInteractiveSession(this.#deps.database.reader<AccountTables>(), hashToken(session));
    if (row === undefined || row.created_at + sessionLifetime < this.#deps.clock.now()) {
      throw this.#challenge(
        request,
        await this.#begin(request, parameters),
        forbidden('Unknown authentication session'),
      );
    }
    if (row.operation !== request.operation || row.user_id !== (request.requester?.userId ?? null)) {
      throw forbidden('This authentication session is for another operation');
    }
    const completed = new Map(Object.entries(JSON.parse(row.completed) as Record<string, JsonValue>));
    const body = openBody(row.sealed_body, session);
    const progress = { session, createdAt: row.created_at, body, completed };
    if (Object.keys(parameters).length === 0 || digestBody(parameters) === row.body_digest) return progress;
    if (completed.size > 0)
      throw forbidden('The request parameters have changed since the authentication session began');
    return { ...progress, body: parameters };
  }

  async #attempt(
    request: InteractiveAuthRequest,
    progress: Progress,
    type: string,
    auth: JsonObject,
  ): Promise<void> {
    const stage = request.flows.flat().includes(type) ? this.#stages.get(type) : undefined;
    if (stage === undefined) {
      throw this.#challenge(
        request,
        progress,
        new MatrixError(401, 'M_UNRECOGNIZED', 'Unknown authentication stage'),
      );
    }
    const { requester, ip } = request;
    try {
      const result = await stage.verify(auth, { requester, ip, session: progress.session });
      progress.completed.set(type, result);
    } catch (error) {
      if (!(error instanceof MatrixError) || error.status === 429 || error.status >= 500) throw error;
      throw this.#challenge(request, progress, error);
    }
    await this.#save(request, progress);
  }

  #challenge(request: InteractiveAuthRequest, progress: Progress, failure?: MatrixError): Challenge {
    const params: Record<string, JsonObject> = {};
    for (const type of new Set(request.flows.flat())) {
      const param = this.#stages.get(type)?.params?.();
      if (param !== undefined) params[type] = param;
    }
    const flows = request.flows.map((stages) => ({ stages }));
    const completed = [...progress.completed.keys()];
    return new Challenge({ flows, params, session: progress.session, completed }, failure);
  }

  async #save(request: InteractiveAuthRequest, progress: Progress): Promise<void> {
    const { clock, randomness } = this.#deps;
    const sealed_body = sealBody(progress.body, progress.session, randomness);
    if (sealed_body.length > maxBodyBytes) throw tooLarge('The request is too large');
    const row = {
      id_hash: hashToken(progress.session),
      user_id: request.requester?.userId ?? null,
      created_at: progress.createdAt,
      operation: request.operation,
      body_digest: digestBody(progress.body),
      sealed_body,
      completed: JSON.stringify(Object.fromEntries(progress.completed)),
    };
    const now = clock.now();
    const isCleanupDue = now - this.#lastCleanup > cleanupInterval;
    if (isCleanupDue) this.#lastCleanup = now;
    await this.#write(async (writer) => {
      if (isCleanupDue) await deleteInteractiveSessionsBefore(writer, now - sessionLifetime);
      await saveInteractiveSession(writer, row);
    });
  }

  #write<T>(work: (writer: Writer<AccountTables>) => Promise<T>): Promise<T> {
    return this.#deps.database.transaction<AccountTables, T>(work);
  }
}
