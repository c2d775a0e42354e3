import { isJsonObject, type JsonObject, relationOf, topicTexts } from '../protocol/index.ts';
import type { StoredEvent } from '../room-engine/index.ts';

/** What of events can be searched, as clients name it. */
export type SearchKey = 'content.body' | 'content.name' | 'content.topic';

export const searchKeys: readonly SearchKey[] = ['content.body', 'content.name', 'content.topic'];

/** By type of event, the member of its content that is searched. */
const searched: Readonly<Record<string, SearchKey>> = {
  'm.room.message': 'content.body',
  'm.room.name': 'content.name',
  'm.room.topic': 'content.topic',
};

/**
 * The text by which an event is found; `undefined` when it can not be found, as after its redaction. Edits are found
 * by what they say anew.
 */
export function searchedText(
  { event, redactedBy, rejected, softFailed }: StoredEvent,
  keys: readonly SearchKey[] = searchKeys,
): string | undefined {
  const key = Object.hasOwn(searched, event.type) ? searched[event.type] : undefined;
  if (key === undefined || !keys.includes(key)) return undefined;
  if (redactedBy !== undefined || rejected || softFailed) return undefined;
  const content = currentContent(event.content);
  const text =
    key === 'content.topic' ? topicTexts(content).join('\n') : content[key.slice('content.'.length)];
  return typeof text === 'string' && text !== '' ? text : undefined;
}

function currentContent(content: JsonObject): JsonObject {
  const edited = content['m.new_content'];
  return relationOf(content)?.relType === 'm.replace' && isJsonObject(edited) ? edited : content;
}
