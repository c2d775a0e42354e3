import type { Clock } from '../../kernel/clock.ts';
import type { AnyWriter } from '../../kernel/database/index.ts';
import type { Jobs } from '../../kernel/jobs/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import type { PhoneDelegate, TextMessage } from './phone-delegate.ts';
import type { ValidationSessions } from './validation-sessions.ts';

interface ScheduledText extends JsonObject {
  readonly sid: string;
  readonly message: TextMessage;
  readonly nextLink: string | null;
  /** Whether nothing is sent, because the number cannot be validated and the client must not notice that. */
  readonly isDecoy: boolean;
}

/** Maximum number of attempts to have a message sent, while the user waits for it. */
const maxAttempts = 5;

/**
 * Requests text messages after the client is answered, so that the time of the response does not reveal whether a
 * message is sent.
 */
export class TextMessages {
  readonly delegate: PhoneDelegate;
  readonly #deps: { readonly jobs: Jobs; readonly clock: Clock };

  constructor(
    deps: { readonly jobs: Jobs; readonly clock: Clock; readonly sessions: ValidationSessions },
    delegate: PhoneDelegate,
  ) {
    this.#deps = deps;
    this.delegate = delegate;
    deps.jobs.register<ScheduledText>('third-party-ids/text', {
      maxAttempts,
      run: async ({ payload: { sid, message, nextLink, isDecoy } }) => {
        if (isDecoy) return;
        const remoteSid = await delegate.sendToken(message, nextLink ?? undefined);
        await deps.sessions.setRemote(sid, remoteSid);
      },
    });
  }

  /** Schedules a message in the transaction of `writer`. */
  async schedule(writer: AnyWriter, payload: ScheduledText): Promise<void> {
    const { jobs, clock } = this.#deps;
    await jobs.schedule(writer, { kind: 'third-party-ids/text', payload, runAt: clock.now() });
  }
}
