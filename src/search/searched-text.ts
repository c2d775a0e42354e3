import { isJsonObject, type JsonObject, relationOf, topicTexts } from '../protocol/index.ts';
import type { StoredEvent } from '../room-engine/index.ts';

/** Searchable fields of contents, by their names in requests. */
export type SearchKey = 'content.body' | 'content.name' | 'content.topic';

export const searchKeys: readonly SearchKey[] = ['content.body', 'content.name', 'content.topic'];

/** The searched field of the content, by event type. */
const searched: Readonly<Record<string, SearchKey>> = {
  'm.room.message': 'content.body',
  'm.room.name': 'content.name',
  'm.room.topic': 'content.topic',
};

/**
 * Returns the searchable text of an event; `undefined` when it has none, for instance after a redaction. Edits are
 * found by their new content.
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
