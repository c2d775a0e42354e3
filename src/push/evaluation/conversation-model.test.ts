import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { runs } from '../../../test/support/inputs/thoroughness.ts';
import { alice, bob, carol } from '../../../test/support/rooms/rooms.ts';
import { openAccountData } from '../../account-data/index.ts';
import { deleteRule, putRule, setRuleEnabled } from '../../protocol/index.ts';
import {
  isReadByReceipt,
  isUnread,
  type ModelEvent,
  type ModelUser,
  modelCounts,
  newModelUser,
  verdictOf,
} from '../test/notification-model.ts';
import { openUnread, unreadFromDisk, unreadOver } from '../test/unread-under-test.ts';

/**
 * An action of a user. `count` requests the unread counts; `rules`, `keyword` and `ignore` change the user's push rules
 * and ignored users; the others send an event or a receipt, or leave and join the room.
 */
interface Step {
  readonly action:
    | 'say'
    | 'notice'
    | 'mention'
    | 'reply'
    | 'react'
    | 'edit'
    | 'redact'
    | 'read'
    | 'rejoin'
    | 'count'
    | 'rules'
    | 'keyword'
    | 'ignore';
  readonly userId: string;
  /** Selects the target among the events that were sent. */
  readonly targetNumber: number;
  /** Chooses between two forms of the action: whether a text has the keyword, an edit mentions users, a receipt is for a thread. */
  readonly isSecondForm: boolean;
}

const script = fc.array(
  fc.record<Step>({
    action: fc.constantFrom(
      'say',
      'say',
      'notice',
      'mention',
      'reply',
      'react',
      'edit',
      'redact',
      'read',
      'read',
      'rejoin',
      'count',
      'count',
      'rules',
      'keyword',
      'ignore',
    ),
    userId: fc.constantFrom(alice, alice, bob, carol),
    targetNumber: fc.nat(1000),
    isSecondForm: fc.boolean(),
  }),
  { minLength: 10, maxLength: 40 },
);

const mentioned = [bob, carol];

/** Opens unread counts over real account data, which holds the ignored users. */
async function openServices(open: Parameters<typeof openUnread>[0]) {
  const { fixture } = await openUnread(open);
  const { database, streams, caches } = fixture;
  const { accountData, ignoredUsers } = openAccountData({ database, streams, caches }, () => false);
  return { fixture, accountData, ignoredUsers, ...unreadOver(fixture, { ignored: ignoredUsers }) };
}

type PushServices = Awaited<ReturnType<typeof openServices>>;

/** Performs the steps of a script in a room, on the server and in the model. */
class ConversationRun {
  readonly events: ModelEvent[] = [];
  readonly users = new Map([alice, bob, carol].map((userId) => [userId, newModelUser(userId)]));
  readonly roomId: string;
  readonly #services: PushServices;

  private constructor(services: PushServices, roomId: string) {
    this.#services = services;
    this.roomId = roomId;
  }

  static async begin(services: PushServices): Promise<ConversationRun> {
    const run = new ConversationRun(services, await services.fixture.room(alice, bob, carol));
    for (const user of run.users.values()) {
      await run.#setRules(user, true, false);
      await run.#setIgnored(user);
    }
    return run;
  }

  async step({ action, userId, targetNumber, isSecondForm }: Step): Promise<void> {
    const { fixture, counts, read } = this.#services;
    const { roomId } = this;
    const user = this.users.get(userId)!;
    const picked = targetNumber % Math.max(1, this.events.length);
    const target = this.events[picked];
    const body = isSecondForm ? 'some cake' : 'hello';
    const mentions = { 'm.mentions': { user_ids: mentioned } };
    if (action === 'count') await counts(userId, roomId);
    else if (action === 'say')
      this.#add(await fixture.say(userId, roomId, body), userId, { hasKeyword: isSecondForm });
    else if (action === 'notice') {
      const content = { msgtype: 'm.notice', body };
      this.#add(await fixture.send(userId, roomId, 'm.room.message', content), userId, { kind: 'notice' });
    } else if (action === 'mention') {
      const fields = { mentions: mentioned, hasKeyword: isSecondForm };
      this.#add(await fixture.say(userId, roomId, body, mentions), userId, fields);
    } else if (action === 'rules')
      await this.#setRules(user, !user.isNotifiedOfMessages, user.highlightsKeyword);
    else if (action === 'keyword')
      await this.#setRules(user, user.isNotifiedOfMessages, !user.highlightsKeyword);
    else if (action === 'ignore') {
      const otherUserId = userId === alice ? carol : alice;
      if (!user.ignored.delete(otherUserId)) user.ignored.add(otherUserId);
      await this.#setIgnored(user);
    } else if (action === 'rejoin' && userId !== alice) {
      await fixture.leave(userId, roomId);
      await fixture.join(userId, roomId);
      user.joinedAt = this.events.length;
    } else if (!target) return;
    else if (action === 'reply' && target.thread === 'main' && target.kind === 'message') {
      this.#add(await fixture.reply(userId, roomId, target.id), userId, { thread: target.id });
    } else if (action === 'react') {
      const relation = { rel_type: 'm.annotation', event_id: target.id, key: `+${this.events.length}` };
      const id = await fixture.send(userId, roomId, 'm.reaction', { 'm.relates_to': relation });
      this.#add(id, userId, { kind: 'reaction', thread: target.thread });
    } else if (action === 'edit') {
      const relation = { 'm.relates_to': { rel_type: 'm.replace', event_id: target.id } };
      const fields = {
        ...relation,
        ...(isSecondForm && mentions),
        'm.new_content': { msgtype: 'm.text', body },
      };
      const id = await fixture.say(userId, roomId, `* ${body}`, fields);
      const thread = target.thread;
      this.#add(id, userId, { kind: 'edit', thread, ...(isSecondForm && { mentions: mentioned }) });
    } else if (action === 'redact' && target.kind !== 'redaction') {
      this.#add(await fixture.redact(target.sender, roomId, target.id), target.sender, { kind: 'redaction' });
      target.isRedacted = true;
    } else if (action === 'read') {
      const thread = isSecondForm ? target.thread : undefined;
      if (await read(userId, roomId, target.id, thread).then(notForbidden, isForbidden)) return;
      const key = thread ?? 'room';
      user.read.set(key, Math.max(user.read.get(key) ?? -1, picked));
    }
  }

  #add(id: string, sender: string, fields: Partial<ModelEvent>): void {
    const defaults = { kind: 'message', thread: 'main', mentions: [], hasKeyword: false } as const;
    this.events.push({ id, sender, isRedacted: false, ...defaults, ...fields });
  }

  async #setRules(user: ModelUser, notifiesOfMessages: boolean, highlightsKeyword: boolean): Promise<void> {
    const { rules } = this.#services;
    user.isNotifiedOfMessages = notifiesOfMessages;
    user.highlightsKeyword = highlightsKeyword;
    const hasRule = (await rules.rulesetOf(user.userId)).content.some((rule) => rule.rule_id === 'cake');
    await rules.change(user.userId, (stored) => {
      const changed = setRuleEnabled(stored, 'underride', '.m.rule.message', notifiesOfMessages);
      const actions = ['notify', { set_tweak: 'highlight' }];
      if (highlightsKeyword) return putRule(changed, 'content', 'cake', { pattern: 'cake', actions });
      return hasRule ? deleteRule(changed, 'content', 'cake') : changed;
    });
  }

  async #setIgnored({ userId, ignored }: ModelUser): Promise<void> {
    const key = { userId, roomId: undefined, type: 'm.ignored_user_list' };
    const users = Object.fromEntries([...ignored].map((ignoredId) => [ignoredId, {}]));
    await this.#services.accountData.set(key, { ignored_users: users });
  }
}

/** Returns false for a receipt that was accepted; the counterpart of `isForbidden`. */
const notForbidden = () => false;

/** Returns true for a receipt that was rejected because the user must not see the event, which is older than the user's join. */
function isForbidden(error: unknown): boolean {
  if ((error as { errcode?: string }).errcode !== 'M_FORBIDDEN') throw error;
  return true;
}

forSelectedDatabases(import.meta.url, (open) => {
  describe('push in generated conversations', () => {
    it('agrees with a model on notified users, unread counts, notifications of delayed pushes and the list of notifications, also when unread counts are read in between', async () => {
      const services = await openServices(open);
      const { counts, notified, notifications, badge } = services;
      await fc.assert(
        fc.asyncProperty(script, async (steps) => {
          const run = await ConversationRun.begin(services);
          const { roomId, events, users } = run;
          for (const step of steps) {
            const before = events.length;
            await run.step(step);
            if (events.length === before) continue;
            const event = events.at(-1)!;
            const expected = [...users.values()]
              .filter((user) => verdictOf(event, user) !== 'nothing')
              .map((user) => `${user.userId}${verdictOf(event, user) === 'highlight' ? '!' : ''}`);
            assert.deepEqual(await notified(event.id, ...users.keys()), expected.sort(), 'notified');
          }
          const fromMemory = unreadOver(services.fixture, { ignored: services.ignoredUsers });
          const fromDisk = unreadFromDisk(services.fixture, { ignored: services.ignoredUsers });
          for (const user of users.values()) {
            const expected = modelCounts(events, user);
            assert.equal(await counts(user.userId, roomId), expected, `counts of ${user.userId}`);
            assert.equal(
              await fromMemory.counts(user.userId, roomId),
              expected,
              'counts from the events in memory',
            );
            assert.equal(await fromDisk.counts(user.userId, roomId), expected, 'counts after a restart');
            assert.equal(await badge(user.userId), await fromMemory.badge(user.userId), 'badges');
            const pending: string[] = [];
            for (const { id } of events) {
              const stored = await services.fixture.engine.events.getById(id);
              if (await services.eventNotifications.ofPending(stored!, user.userId)) pending.push(id);
            }
            const unread = events.filter((_, index) => isUnread(events, index, user));
            assert.deepEqual(
              pending,
              unread.map(({ id }) => id),
              `pending notifications of ${user.userId}`,
            );
            for (const onlyHighlights of [false, true]) {
              const viewer = { userId: user.userId, deviceId: 'DEVICE' };
              const page = await notifications.page(viewer, { from: undefined, limit: 100, onlyHighlights });
              const listed = page.notifications
                .filter(
                  ({ room_id, event }) =>
                    room_id === roomId && (event as unknown as SentEvent).type !== 'm.room.member',
                )
                .map(({ event, read }) => [(event as unknown as SentEvent).event_id, read]);
              const expectedPage = events
                .map((event, index) => ({ event, index, verdict: verdictOf(event, user) }))
                .filter(({ index }) => index >= user.joinedAt)
                .filter(({ verdict }) => verdict === 'highlight' || (verdict === 'notify' && !onlyHighlights))
                .map(({ event, index }) => [event.id, isReadByReceipt(index, event, user)])
                .reverse();
              assert.deepEqual(listed, expectedPage, `notifications of ${user.userId}`);
            }
          }
        }),
        { numRuns: runs(20) },
      );
    });
  });
});

interface SentEvent {
  readonly event_id: string;
  readonly type: string;
}
