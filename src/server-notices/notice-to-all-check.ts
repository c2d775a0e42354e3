import {
  badJson,
  canonicalJson,
  fitsBytes,
  invalidParam,
  type JsonObject,
  type MatrixError,
  relationOf,
  tooLarge,
} from '../protocol/index.ts';
import { isStorableText } from '../room-engine/index.ts';

/** Maximum bytes of the content: the other fields of an event need the rest of the 65,536 that an event may have. */
const maxContentBytes = 60_000;

/** Maximum bytes of the type of an event. Source: client-server API, "Size limits". */
const maxTypeBytes = 255;

/** Types of state events that rooms reject as messages, always or with some contents. Source: "Authorization rules". */
const stateTypes: ReadonlySet<string> = new Set([
  'm.room.aliases',
  'm.room.create',
  'm.room.power_levels',
  'm.room.third_party_invite',
]);

/** Errcodes of a notice that cannot be sent to any user; M_UNKNOWN means that notices are turned off. */
const faultsOfNotice: ReadonlySet<string> = new Set(['M_BAD_JSON', 'M_TOO_LARGE', 'M_UNKNOWN']);

/**
 * Checks that every room accepts a notice, so that sending it does not fail for each user.
 * @throws MatrixError as sending the event to a room does: M_BAD_JSON for text that cannot be stored and content that
 * is not canonical JSON, M_TOO_LARGE, M_INVALID_PARAM for types of state events and for relations to events, because an
 * event is in one room only
 */
export function checkNoticeToAll(type: string, content: JsonObject): void {
  if (!isStorableText(type)) throw badJson('The event type has a NUL character or an unpaired surrogate');
  if (!fitsBytes(type, maxTypeBytes))
    throw tooLarge(`The type of an event may have at most ${maxTypeBytes} bytes`);
  if (stateTypes.has(type))
    throw invalidParam(`Events of type ${type} cannot be sent as notices to all users`);
  if (!fitsBytes(canonicalJson(content), maxContentBytes))
    throw tooLarge(`The content of a notice to all users may have at most ${maxContentBytes} bytes`);
  if (relationOf(content)) throw invalidParam('A notice to all users cannot relate to an event');
}

/** Whether a notice failed because of its recipient, so that it can be sent to other users. */
export const isAboutRecipient = ({ status, errcode }: MatrixError): boolean =>
  status < 500 && !faultsOfNotice.has(errcode);
