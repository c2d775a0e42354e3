/** With more messages than this, a client was away; they come all together, so that it need not ask very often. */
const few = 10;

/** What is in front of the content: who sent the message, and its type. */
const headOf = (message: string) => message.slice(0, message.indexOf(',"content":'));

const isEncrypted = (head: string) => head.endsWith('"type":"m.room.encrypted"');

/**
 * How many of the next messages for a device are given to it together. Encrypted ones of the same sender come one by one
 * while the queue is short. They may hold the key of the same room twice: a client sends it again, for the messages to
 * come, when the other side has begun a session at the same time. Widely used clients look for the earlier one where
 * they keep their keys, and what came in the same sync is not there yet; so the later one takes its place, and what was
 * said before can not be read any more. Decision 0040.
 * @param messages each `{sender, type, content}` as JSON, in the order of arrival
 */
export function syncBatchSize(messages: readonly string[]): number {
  if (messages.length > few) return messages.length;
  const senders = new Set<string>();
  for (const [index, message] of messages.entries()) {
    const head = headOf(message);
    if (!isEncrypted(head)) continue;
    if (senders.has(head)) return index;
    senders.add(head);
  }
  return messages.length;
}
