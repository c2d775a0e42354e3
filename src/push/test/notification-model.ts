/** A message or another event of the model, in the order of the timeline. */
export interface ModelEvent {
  readonly id: string;
  readonly sender: string;
  /** Id of the root of the event's thread; `main` on the main timeline. */
  readonly thread: string;
  readonly kind: 'message' | 'notice' | 'reaction' | 'edit' | 'redaction';
  readonly mentions: readonly string[];
  /** Whether the text of the event contains the keyword. */
  readonly hasKeyword: boolean;
  isRedacted: boolean;
}

/** The state of a user in the model. Positions are indexes of events. */
export interface ModelUser {
  readonly userId: string;
  /** Index of the first event after the user's last join. */
  joinedAt: number;
  /** The last event that a receipt covers: for all threads with the key `room`, otherwise by thread. */
  readonly read: Map<string, number>;
  readonly ignored: Set<string>;
  /** Whether the default rule for messages is enabled. */
  isNotifiedOfMessages: boolean;
  /** Whether a rule highlights messages with the keyword. */
  highlightsKeyword: boolean;
}

export const newModelUser = (userId: string): ModelUser => ({
  userId,
  joinedAt: 0,
  read: new Map(),
  ignored: new Set(),
  isNotifiedOfMessages: true,
  highlightsKeyword: false,
});

/** Returns whether an event notifies a user by their present rules, computed as the specification describes it. */
export function verdictOf(event: ModelEvent, user: ModelUser): 'nothing' | 'notify' | 'highlight' {
  const { sender, kind, mentions, hasKeyword, isRedacted } = event;
  if (sender === user.userId || isRedacted || user.ignored.has(sender)) return 'nothing';
  if (kind === 'notice' || kind === 'redaction') return 'nothing';
  if (mentions.includes(user.userId)) return 'highlight';
  if (kind === 'reaction' || kind === 'edit') return 'nothing';
  if (hasKeyword && user.highlightsKeyword) return 'highlight';
  return user.isNotifiedOfMessages ? 'notify' : 'nothing';
}

/** Returns whether receipts of a user cover the event at an index. */
export const isReadByReceipt = (index: number, { thread }: ModelEvent, { read }: ModelUser): boolean =>
  index <= Math.max(read.get('room') ?? -1, read.get(thread) ?? -1);

/** Returns whether an event at an index notifies a user who has neither read nor answered it since. */
export function isUnread(events: readonly ModelEvent[], index: number, user: ModelUser): boolean {
  const event = events[index]!;
  if (index < user.joinedAt || isReadByReceipt(index, event, user)) return false;
  const hasAnswered = events
    .slice(index)
    .some(
      (later) => later.sender === user.userId && later.thread === event.thread && later.kind !== 'redaction',
    );
  return !hasAnswered && verdictOf(event, user) !== 'nothing';
}

/** Returns notification and highlight counts of the room, then of the main timeline, then of threads, as text. */
export function modelCounts(events: readonly ModelEvent[], user: ModelUser): string {
  const counts = new Map([['main', [0, 0]]]);
  const room = [0, 0];
  for (const [index, event] of events.entries()) {
    if (!isUnread(events, index, user)) continue;
    const verdict = verdictOf(event, user);
    const count = counts.get(event.thread) ?? [0, 0];
    counts.set(event.thread, count);
    for (const counter of [room, count]) {
      counter[0]!++;
      if (verdict === 'highlight') counter[1]!++;
    }
  }
  const { main, ...threads } = Object.fromEntries(
    [...counts].map(([name, count]) => [name, count.join('/')]),
  );
  return [room.join('/'), main, ...Object.values(threads).sort()].join(' ');
}
