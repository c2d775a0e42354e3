import type { Requester } from '../../kernel/http/index.ts';
import type { JsonObject, JsonValue } from '../../protocol/index.ts';

/** One way in which a user proves something, for instance that they know the password. */
export interface Stage {
  /** For instance `m.login.dummy`. */
  readonly type: string;
  /** What a client must know to go through it. */
  params?(): JsonObject;
  /**
   * Checks what the client sent.
   * @returns something to remember, for instance the registration token that was used
   * @throws MatrixError when it does not prove anything
   */
  verify(auth: JsonObject, context: StageContext): Promise<JsonValue> | JsonValue;
}

export interface StageContext {
  /** Who is logged in; `undefined` in a registration. */
  readonly requester: Requester | undefined;
  readonly ip: string;
  /** The id of the session that the stage is part of. */
  readonly session: string;
}

/** Lists of stages; going through all stages of one list is enough. */
export type Flows = readonly (readonly string[])[];

/** Proves nothing; for operations that need no proof but speak this protocol. */
export const dummyStage: Stage = { type: 'm.login.dummy', verify: () => true };
