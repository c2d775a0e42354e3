/**
 * A longer queue means that the client was offline. It gets all messages in one sync, so that it needs few
 * requests.
 */
const maxShortQueue = 10;

/** Returns the part before the content: sender and type of the message. */
const senderAndTypeOf = (message: string) => message.slice(0, message.indexOf(',"content":'));

const isEncrypted = (senderAndType: string) => senderAndType.endsWith('"type":"m.room.encrypted"');

/**
 * Returns how many of the next messages of a device go into one sync response. From a short queue, a response
 * has at most one encrypted message of each sender. Two of them may contain the same room key: a client sends
 * it again, for later messages, when both sides create an Olm session at the same time. Widely used clients
 * compare it only with the keys in their store, where the key from the same sync is not yet; they replace the
 * earlier key by the later one and cannot decrypt the earlier messages any more. Decision 0040.
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
