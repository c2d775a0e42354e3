import type { EphemeralSection, ExtensionRoom } from '../../../sync-contract/index.ts';
import type { SourceSection } from '../../sources/source-list.ts';
import { isRemembered, type SentPart, sentUpTo } from '../connections/sent-room.ts';
import type { InRooms } from '../request.ts';
import type { RelevantRoom } from '../rooms/relevant-room.ts';
import { type ExtensionAnswer, type ExtensionContext, roomsFor, roomsText } from './extension.ts';

/**
 * Returns the ephemeral events of one section, one for each joined room in the answer. Source: MSC4186, "Extensions".
 * `bit` marks changes of this section in the `changedBits` of a room.
 */
export async function ephemeralExtension(
  { bit, section: { extension } }: SourceSection<EphemeralSection>,
  context: ExtensionContext,
  request: InRooms,
): Promise<ExtensionAnswer> {
  const covered = roomsFor(context.rooms, request).filter((room) => room.request.room.membership === 'join');
  const rooms = covered.map((room) => ({
    roomId: room.request.room.roomId,
    eventIds: room.result.eventIds,
    ...progressOf(extension.name, bit, context, room),
  }));
  const events = await extension.inRooms(context.userId, rooms, context.upTo);
  return {
    name: extension.name,
    text: `{"rooms":${roomsText(events)}}`,
    hasNewData: events.size > 0,
    covered,
  };
}

/**
 * Returns the position up to which the client has an extension's data of a room, and whether the data may have changed
 * since then. The progress of the timeline applies where the connection remembers none for the extension
 * (`isRemembered`). `changedBits` suffice only for a `live` part: otherwise the client may also lack older data.
 */
function progressOf(
  name: string,
  bit: number,
  { since }: ExtensionContext,
  { request, result, changedBits }: RelevantRoom,
): Pick<ExtensionRoom, 'after' | 'mayHaveChanged'> {
  const isRecorded = isRemembered(name);
  const sent: SentPart = request.sent?.[isRecorded ? name : 'timeline'] ?? 'never';
  const remembered = result.isInitial ? undefined : sentUpTo(sent, since);
  return {
    after: isRecorded ? remembered : request.after,
    mayHaveChanged: sent !== 'live' || (changedBits & bit) !== 0,
  };
}
