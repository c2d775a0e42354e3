import type { JsonObject } from '../../protocol/index.ts';
import type { VisibleEvent } from './room-view.ts';

/** The viewer's `membership` in `unsigned`, for viewers who were joined when the event was sent. */
const asJoined = ',"membership":"join"';

/**
 * The JSON text of an event without its age, because the age changes, and without the viewer's membership, because
 * only some viewers receive it.
 */
export class SharedText {
  /** Nid of the redaction that was known when the text was made. */
  readonly redactedBy: number | undefined;
  /** The `origin_server_ts` of the event. */
  readonly sentAt: number;
  /** The text between the opening brace and the age. */
  readonly beforeAge: string;
  /** The text after the age. */
  readonly afterAge: string;

  /**
   * @param event the event as it is rendered for clients other than the sender's, without `room_id`
   * @param sentAt milliseconds since the epoch
   */
  constructor(event: JsonObject, sentAt: number, redactedBy: number | undefined) {
    const { unsigned, ...rest } = event;
    const { age: _age, membership: _membership, ...otherFields } = (unsigned ?? {}) as JsonObject;
    const unsignedText = JSON.stringify(otherFields);
    this.redactedBy = redactedBy;
    this.sentAt = sentAt;
    this.beforeAge = `${JSON.stringify(rest).slice(1, -1)},"unsigned":{"age":`;
    this.afterAge = `${unsignedText === '{}' ? '}' : `,${unsignedText.slice(1)}`}}`;
  }

  /** Number of characters, without the age. */
  get length(): number {
    return this.beforeAge.length + this.afterAge.length;
  }

  /**
   * Returns the whole text for a viewer.
   * @param now milliseconds since the epoch
   * @param membership `undefined` for a text without a membership; other values are rendered as `join`
   * @param start the opening brace, and fields that precede all other fields
   * @param senderFields fields of `unsigned` that only the sender's device receives, each with a comma in front
   */
  at(now: number, membership: VisibleEvent['membership'], start = '{', senderFields = ''): string {
    const age = Math.max(0, now - this.sentAt);
    const viewerFields = membership === undefined ? senderFields : asJoined + senderFields;
    return start + this.beforeAge + age + viewerFields + this.afterAge;
  }
}
