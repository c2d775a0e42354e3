import { type JsonObject, type JsonValue, unrecognized } from '../../protocol/index.ts';
import { type AuthSessions, digestOperation } from './auth-sessions.ts';
import type { SessionRow } from './session-store.ts';
import {
  registrationOperation,
  type Stage,
  type StageContext,
  type StageForm,
  type Stages,
} from './stage.ts';

/**
 * Completes stages of interactive authentication on pages of this server. The client carries out the operation
 * afterwards. Source: client-server API, "User-Interactive Authentication API", "Fallback".
 */
export class BrowserStages {
  readonly #sessions: AuthSessions;
  readonly #stages: Stages;

  constructor(sessions: AuthSessions, stages: Stages) {
    this.#sessions = sessions;
    this.#stages = stages;
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
    if (form === undefined) throw unknownStage();
    return { form, context: contextOf(await this.#sessions.findUnanswered(session), session, ip) };
  }

  /**
   * Attempts a stage with the fields that the user has entered on a page.
   * @throws MatrixError M_UNRECOGNIZED for an unknown stage, M_FORBIDDEN for an unknown session, and the
   * errors of the stage
   */
  attempt(session: string, type: string, auth: JsonObject, ip: string): Promise<void> {
    return this.#complete(session, type, (stage, row) => stage.verify(auth, contextOf(row, session, ip)));
  }

  /**
   * Marks a stage as completed after the user has completed it elsewhere, for instance at an identity
   * provider.
   * @throws MatrixError M_UNRECOGNIZED for an unknown stage, M_FORBIDDEN for an unknown session
   */
  complete(session: string, type: string, result: JsonValue): Promise<void> {
    return this.#complete(session, type, () => result);
  }

  /** @param prove returns the result of the stage; throws when the stage fails */
  #complete(
    session: string,
    type: string,
    prove: (stage: Stage, row: SessionRow) => Promise<JsonValue> | JsonValue,
  ): Promise<void> {
    return this.#sessions.exclusively(session, async () => {
      const stage = this.#stages.get(type);
      if (stage === undefined) throw unknownStage();
      const row = await this.#sessions.findUnanswered(session);
      await this.#sessions.addCompleted(session, stage, await prove(stage, row));
    });
  }
}

const contextOf = (row: SessionRow, session: string, ip: string): StageContext => ({
  requester: row.user_id === null ? undefined : { userId: row.user_id },
  ip,
  session,
  isRegistration: row.operation === digestOperation(registrationOperation),
});

const unknownStage = () => unrecognized('Unknown authentication stage');
