/**
 * Maximum number of messages of a short queue. A longer queue means that the client was offline; the client then
 * receives all messages in one sync, so that it needs few requests.
 */
const maxShortQueue = 10;

/** Returns the part before the content: sender and type of the message. */
const senderAndTypeOf = (message: string) => message.slice(0, message.indexOf(',"content":'));

const isEncrypted = (senderAndType: string) => senderAndType.endsWith('"type":"m.room.encrypted"');

/**
 * Returns how many of the next messages of a device go into one sync response. From a short queue, a response has at
 * most one encrypted message of each sender, because two of them may contain the same room key. When both sides create
 * an Olm session at the same time, a client sends the key a second time. The second copy has a later message index, so it
 * does not decrypt the messages before that index. Widely used clients compare a received key only with keys from earlier
 * syncs. When one sync contains both copies, these clients keep only the second copy and cannot decrypt the room's earlier
 * messages any more. Decision 0040.
 * @param messages each `{sender, type, content}` as JSON, in the order of arrival
 */
export function syncBatchSize(messages: readonly string[]): number {
  if (messages.length > maxShortQueue) return messages.length;
  const senders = new Set<string>();
  for (const [index, message] of messages.entries()) {
    const senderAndType = senderAndTypeOf(message);
    if (!isEncrypted(senderAndType)) continue;
    if (senders.has(senderAndType)) return index;
    senders.add(senderAndType);
  }
  return messages.length;
}
