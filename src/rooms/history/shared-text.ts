import type { JsonObject } from '../../protocol/index.ts';
import type { VisibleEvent } from './room-view.ts';

/** The reader's `membership` in `unsigned`, for readers who were joined when the event was sent. */
const asJoined = ',"membership":"join"';

/** The JSON text of an event without its age, because the age changes, and without the reader's membership, because only some readers get it. */
export class SharedText {
  /** Nid of the redaction that was known when the text was made. */
  readonly redactedBy: number | undefined;
  readonly #sentAt: number;
  /** Begins after the opening brace. */
  readonly #beforeAge: string;
  readonly #afterAge: string;

  /**
   * @param event as clients other than the sender's get it, without `room_id`
   * @param sentAt milliseconds since 1970
   */
  constructor(event: JsonObject, sentAt: number, redactedBy: number | undefined) {
    const { unsigned, ...rest } = event;
    const { age: _age, membership: _membership, ...others } = (unsigned ?? {}) as JsonObject;
    const tail = JSON.stringify(others);
    this.redactedBy = redactedBy;
    this.#sentAt = sentAt;
    this.#beforeAge = `${JSON.stringify(rest).slice(1, -1)},"unsigned":{"age":`;
    this.#afterAge = `${tail === '{}' ? '}' : `,${tail.slice(1)}`}}`;
  }

  /**
   * @param now milliseconds since 1970
   * @param start the opening brace, and members before the others
   * @param ofSender members of `unsigned` that only the sender's device gets, each with a comma in front
   */
  at(now: number, membership: VisibleEvent['membership'], start = '{', ofSender = ''): string {
    const age = Math.max(0, now - this.#sentAt);
    const own = membership === undefined ? ofSender : asJoined + ofSender;
    return start + this.#beforeAge + age + own + this.#afterAge;
  }
}
