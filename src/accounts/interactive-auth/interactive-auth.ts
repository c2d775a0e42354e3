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

/** A request for something that needs a proof. */
export interface InteractiveAuthRequest {
  /** What is to be done and to what, for instance `DELETE /devices/ABC`. */
  readonly operation: string;
  /** The request's body; its member `auth` is the proof, the rest the parameters of the operation. */
  readonly body: JsonObject;
  readonly requester: Requester | undefined;
  readonly ip: string;
  readonly flows: Flows;
}

/** A request whose proof is complete. */
export interface InteractiveAuthResult {
  /** The parameters, without `auth`. */
  readonly body: JsonObject;
  /** Completed stages to what they remember. */
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

/** Milliseconds that a session may take, and between two rounds of clearing out those that took longer. */
const [sessionLifetime, clearingInterval] = [24 * 3_600_000, 3_600_000];

/** Bytes of a request's parameters: they are stored for whoever asks. */
const largestBody = 65_536;

/**
 * User-interactive authentication: a client repeats its request, each time with one more stage of a flow, until a flow
 * is complete. A session is good for one operation with the same parameters, by the same user, once.
 * Source: client-server API, "User-Interactive Authentication API".
 */
export class InteractiveAuth {
  readonly #deps: InteractiveAuthDeps;
  readonly #stages: ReadonlyMap<string, Stage>;
  #cleared = 0;

  constructor(deps: InteractiveAuthDeps, stages: readonly Stage[]) {
    this.#deps = deps;
    this.#stages = new Map(stages.map((stage) => [stage.type, stage]));
  }

  /**
   * Resolves when the proof is complete; the session is used up then.
   * @throws Challenge (401) with what is still to do; MatrixError M_FORBIDDEN when the session is for something else
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
    if (!used) throw forbidden('This session was used already');
    return { body: progress.body, completed: progress.completed };
  }

  /** Marks a stage as completed that the user went through elsewhere, for instance on a web page. */
  async complete(session: string, stage: string, result: JsonValue): Promise<void> {
    const idHash = hashToken(session);
    await this.#write(async (writer) => {
      const row = await findInteractiveSession(writer, idHash);
      if (row === undefined) throw forbidden('Unknown session');
      const completed = { ...(JSON.parse(row.completed) as JsonObject), [stage]: result };
      await saveInteractiveSession(writer, { ...row, completed: JSON.stringify(completed) });
    });
  }

  /** Ends everything that a user has begun, inside the caller's transaction. */
  forgetUser(writer: AnyWriter, userId: string): Promise<void> {
    return deleteInteractiveSessionsOf(writerFor<AccountTables>(writer), userId);
  }

  async #begin(request: InteractiveAuthRequest, body: JsonObject): Promise<Progress> {
    const session = randomString(this.#deps.randomness, 24);
    const progress = { session, createdAt: this.#deps.clock.now(), body, completed: new Map() };
    await this.#save(request, progress);
    return progress;
  }

  /** The session that the client goes on with. Until something is proven, the parameters may still change. */
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
      throw this.#challenge(request, await this.#begin(request, parameters), forbidden('Unknown session'));
    }
    if (row.operation !== request.operation || row.user_id !== (request.requester?.userId ?? null)) {
      throw forbidden('This session is for another operation');
    }
    const completed = new Map(Object.entries(JSON.parse(row.completed) as Record<string, JsonValue>));
    const body = openBody(row.sealed_body, session);
    const progress = { session, createdAt: row.created_at, body, completed };
    if (Object.keys(parameters).length === 0 || digestBody(parameters) === row.body_digest) return progress;
    if (completed.size > 0) throw forbidden('The request has changed since the session began');
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
      throw this.#challenge(request, progress, new MatrixError(401, 'M_UNRECOGNIZED', 'Unknown stage'));
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
    if (sealed_body.length > largestBody) throw tooLarge('The request is too large');
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
    const clearing = now - this.#cleared > clearingInterval;
    if (clearing) this.#cleared = now;
    await this.#write(async (writer) => {
      if (clearing) await deleteInteractiveSessionsBefore(writer, now - sessionLifetime);
      await saveInteractiveSession(writer, row);
    });
  }

  #write<T>(work: (writer: Writer<AccountTables>) => Promise<T>): Promise<T> {
    return this.#deps.database.transaction<AccountTables, T>(work);
  }
}
