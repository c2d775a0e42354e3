import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { manualClock } from '../../../test/support/clocks/manual-clock.ts';
import { forSelectedDatabases, selectedDatabases } from '../../../test/support/databases/databases.ts';
import type { ReceivedMail } from '../../../test/support/network/mail-server.ts';
import type { TestUser } from '../../../test/support/servers/server.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import { pusherMigrations } from '../migrations.ts';
import { addPending } from '../queue/pending-pushes.ts';
import { readPushers, writePusher } from '../store.ts';
import type { PusherTables } from '../tables.ts';
import type { Clients } from '../test/clients.ts';
import { MailingServer } from '../test/mailing-server.ts';
import { MailPushers, type MailPushersDeps } from './mail-pushers.ts';
import { writeThrottle } from './mail-throttle.ts';

const minute = 60_000;

/** The users who receive mails. */
const names = [
  'bea',
  'ben',
  'bob',
  'bud',
  'cam',
  'cas',
  'cem',
  'cid',
  'dan',
  'eve',
  'fay',
  'gus',
  'hal',
  'ike',
  'kit',
  'lea',
] as const;

const unsubscribeLinkOf = ({ content }: ReceivedMail) => {
  const header = content.headers.find(({ key }) => key === 'list-unsubscribe')?.value ?? '';
  return header.slice(1, -1).replaceAll(/\s/g, '');
};

for (const database of selectedDatabases(import.meta.url)) {
  describe(`mails about missed events (${database})`, () => {
    let fixture: MailingServer;
    let clients: Clients;
    let anna: TestUser;
    before(async () => {
      fixture = await MailingServer.start(database, {
        enable_notifs: true,
        notif_delay_before_mail: 20 * minute,
        client_base_url: 'https://app.example.org',
        subjects: {
          message_from_person_in_room: 'A %(person)s in %(room)s',
          message_from_person: 'B %(person)s',
          messages_from_person: 'C %(person)s',
          messages_in_room: 'D %(room)s',
          messages_in_room_and_others: 'E %(room)s',
          messages_from_person_and_others: 'F %(person)s',
          invite_from_person_to_room: 'G %(person)s to %(room)s',
          invite_from_person: 'H %(person)s',
        },
      });
      ({ clients } = fixture);
      anna = await fixture.homeserver.server.register('anna');
      for (const name of names) users.set(name, await fixture.subscriber(name));
    });
    after(() => fixture.stop());

    /** Returns a user who receives mails, whose address was validated above, before tests advance the clock. */
    const subscriber = (name: (typeof names)[number]) => users.get(name)!;
    const users = new Map<string, TestUser>();

    const talk = async (user: TestUser, texts: readonly string[], options: object = {}) => {
      const roomId = await clients.room(anna, [user], options);
      for (const text of texts) await clients.say(anna, roomId, text);
      return roomId;
    };
    const withRoomName = { name: 'Garden' };

    it('subscribes new users who register with a mail address or whom an administrator creates with one, and unsubscribes them when they remove the address [option: email.notif_for_new_users]', async () => {
      const registered = await fixture.registerWithAddress('ida');
      const { body } = await clients.get('/pushers', registered);
      const [pusher] = body['pushers'] as Record<string, unknown>[];
      assert.deepEqual(
        [pusher?.['kind'], pusher?.['app_id'], pusher?.['pushkey']],
        ['email', 'm.email', 'ida@example.org'],
      );
      const removal = { medium: 'email', address: 'ida@example.org' };
      await clients.post('/account/3pid/delete', registered, removal);
      assert.deepEqual(await clients.pushkeysOf(registered), []);
      await fixture.createByAdmin('jane', 'Jane@example.org');
      const { body: session } = await fixture.homeserver.login({ type: 'm.id.user', user: 'jane' });
      const jane = { token: String(session['access_token']) };
      assert.deepEqual(await clients.pushkeysOf(jane), ['jane@example.org']);
    });

    it('chooses the subject and the heading of a mail by its rooms, senders and events [option: email.enable_notifs, email.subjects.message_from_person_in_room, email.subjects.message_from_person, email.subjects.messages_from_person, email.subjects.messages_in_room, email.subjects.messages_in_room_and_others, email.subjects.messages_from_person_and_others, email.subjects.invite_from_person_to_room, email.subjects.invite_from_person]', async () => {
      const recipients = ['bea', 'ben', 'bob', 'bud', 'cam', 'cas', 'cem', 'cid'] as const;
      const [bea, ben, bob, bud, cam, cas, cem, cid] = recipients.map(subscriber);
      await talk(bea!, ['one'], withRoomName);
      await talk(ben!, ['one']);
      await talk(bob!, ['one', 'two']);
      await talk(bud!, ['one', 'two'], withRoomName);
      await talk(cam!, ['one'], withRoomName);
      await talk(cam!, ['other']);
      await talk(cas!, ['one']);
      await talk(cas!, ['other']);
      await clients.room(anna, [], { ...withRoomName, preset: 'private_chat', invite: [cem!.userId] });
      await clients.room(anna, [], { preset: 'private_chat', invite: [cid!.userId] });
      const subjects: unknown[] = [];
      const headings: unknown[] = [];
      for (const name of recipients) {
        const { subject, text = '' } = (await fixture.mailTo(name)).content;
        subjects.push(subject);
        headings.push(/^You have (.*)/.exec(text)?.[1]);
        if (name === 'cem') assert.match(text, /anna has invited you to this room\./);
        if (name === 'cid') assert.match(text, /anna has invited you to chat\./);
      }
      assert.deepEqual(subjects, [
        'A anna in Garden',
        'B anna',
        'C anna',
        'D Garden',
        'E Garden',
        'F anna',
        'G anna to Garden',
        'H anna',
      ]);
      const missed = (count: number) => (count === 1 ? 'missed a message' : 'missed messages');
      assert.deepEqual(headings, [...[1, 1, 2, 2, 2, 2].map(missed), ...['an invitation', 'an invitation']]);
    });

    it('mails the events that are unread after the delay, as text and HTML with links into the client [option: email.notif_delay_before_mail, email.client_base_url]', async () => {
      const dan = subscriber('dan');
      const avatar = await fixture.uploadAvatar(anna);
      const sentAt = fixture.homeserver.clock.now();
      const roomId = await talk(dan, ['read', 'before'], withRoomName);
      const unread = await clients.say(anna, roomId, 'Is <b>anyone</b> there?');
      const otherRoomId = await clients.room(anna, [dan]);
      const read = await clients.say(anna, otherRoomId, 'also read');
      await clients.read(dan, otherRoomId, read);
      await clients.read(dan, roomId, await clients.say(dan, roomId, 'my answer'));
      const later = await clients.say(anna, roomId, 'Are you <i>there</i>?');
      const { content } = await fixture.mailTo('dan');
      assert.ok(fixture.homeserver.clock.now() - sentAt >= 20 * minute, 'sent too early');
      const { text = '', html = '', attachments } = content;
      assert.match(text, /^You have missed a message\n\nGarden\n/);
      assert.ok(text.includes('my answer') && text.includes('Are you <i>there</i>?'), text);
      assert.ok(!text.includes('also read') && !text.includes('before') && !text.includes('anyone'), text);
      const link = `https://app.example.org/#/room/${encodeURIComponent(roomId)}`;
      assert.ok(text.includes(`${link}\n`), text);
      assert.ok(html.includes(`href="${link}/${encodeURIComponent(later)}"`), html);
      assert.ok(html.includes('Are you &lt;i&gt;there&lt;/i&gt;?'), html);
      assert.ok(!html.includes(encodeURIComponent(unread)));
      assert.ok(avatar.startsWith('mxc://'));
      assert.match(html, /<img src="cid:picture0"/);
      assert.deepEqual(
        attachments.map(({ contentId, mimeType }) => [contentId, mimeType]),
        [['<picture0>', 'image/png']],
      );
    });

    it('mails no content of encrypted messages, nor of other messages in encrypted rooms', async () => {
      const eve = subscriber('eve');
      const encryption = { type: 'm.room.encryption', content: { algorithm: 'm.megolm.v1.aes-sha2' } };
      const roomId = await clients.room(anna, [eve], { initial_state: [encryption] });
      const secret = { algorithm: 'm.megolm.v1.aes-sha2', ciphertext: 'c2VjcmV0', session_id: 'a' };
      await clients.send(anna, roomId, secret, 'm.room.encrypted');
      await clients.say(anna, roomId, 'not encrypted');
      const { raw, content } = await fixture.mailTo('eve');
      assert.ok(!raw.includes('c2VjcmV0') && !raw.includes('not encrypted'), raw);
      assert.match(content.text ?? '', /Encrypted message/);
    });

    it('mails the next message of a conversation after the usual delay, and later messages only after a day', async () => {
      const roomId = await talk(subscriber('fay'), ['one', 'two', 'three'], withRoomName);
      await fixture.mailTo('fay');
      const first = fixture.homeserver.clock.now();
      await clients.say(anna, roomId, 'four');
      const second = await fixture.mailTo('fay', 2);
      assert.equal(fixture.homeserver.clock.now() - first, 20 * minute);
      assert.match(second.content.text ?? '', /four/);
      const sentAt = fixture.homeserver.clock.now();
      await clients.say(anna, roomId, 'five');
      await clients.say(anna, roomId, 'six');
      await fixture.wait(3 * 60 * minute);
      assert.equal(fixture.mailsTo('fay').length, 2);
      const third = await fixture.mailTo('fay', 3);
      assert.equal(fixture.homeserver.clock.now() - sentAt, 24 * 60 * minute);
      assert.match(third.content.text ?? '', /five\n[\s\S]*six/);
    });

    it('mails no events that the user reads or answers, or that expire, during the delay, and mails later events as usual', async () => {
      const ike = subscriber('ike');
      const roomId = await talk(ike, ['one', 'two']);
      const namedRoomId = await talk(ike, ['three'], withRoomName);
      const policy = { type: 'm.room.retention', content: { max_lifetime: 10 * minute } };
      await talk(ike, ['expires'], { initial_state: [policy] });
      await fixture.wait(19 * minute);
      await clients.read(ike, roomId, await clients.say(anna, roomId, 'four'));
      await clients.say(ike, namedRoomId, 'an answer');
      await fixture.wait(60 * minute);
      assert.deepEqual(fixture.mailsTo('ike'), []);
      await clients.say(anna, roomId, 'five');
      const { text = '' } = (await fixture.mailTo('ike')).content;
      assert.ok(text.includes('five') && !/three|expires/.test(text), text);
    });

    it('keeps one pusher for each mail address, whatever letter case and spaces clients write it with', async () => {
      const lea = subscriber('lea');
      const pusher = (pushkey: string, kind: string | null = 'email') => {
        const names = { app_display_name: 'App', device_display_name: 'Phone', lang: 'en', data: {} };
        return clients.post('/pushers/set', lea, { kind, app_id: 'm.email', pushkey, ...names });
      };
      for (const address of ['LEA@Example.org', ' lea@example.org'])
        assert.equal((await pusher(address)).status, 200);
      assert.deepEqual(await clients.pushkeysOf(lea), ['lea@example.org']);
      await talk(lea, ['one']);
      await fixture.mailTo('lea');
      await fixture.wait(30 * minute);
      assert.equal(fixture.mailsTo('lea').length, 1);
      await pusher('Lea@EXAMPLE.org', null);
      assert.deepEqual(await clients.pushkeysOf(lea), []);
    });

    it('shows names without the characters that change the direction of a text or begin a line', async () => {
      const kit = subscriber('kit');
      await talk(kit, ['one'], { name: 'Ro\u202eom\nUnsubscribe: https://evil.example' });
      const { text = '', html = '', subject = '' } = (await fixture.mailTo('kit')).content;
      for (const part of [text, html, subject]) assert.doesNotMatch(part, /\u202e|m\s*\nUnsubscribe/);
      assert.match(text, /Room Unsubscribe: https:\/\/evil\.example/);
    });

    it('unsubscribes by one click on the link of a mail, and by the button of a mail program', async () => {
      const gus = subscriber('gus');
      const roomId = await talk(gus, ['one']);
      const mail = await fixture.mailTo('gus');
      const link = unsubscribeLinkOf(mail);
      assert.ok((mail.content.html ?? '').replaceAll('&amp;', '&').includes(link));
      assert.ok((mail.content.text ?? '').includes(link));
      assert.match(mail.raw, /^List-Unsubscribe-Post: List-Unsubscribe=One-Click/m);
      const forged = new URL(link);
      forged.searchParams.set('pushkey', 'eve@example.org');
      assert.equal((await fixture.homeserver.open(forged.href)).status, 403);
      const { pathname, search } = new URL(link);
      const url = fixture.homeserver.server.baseUrl + pathname + search;
      // Spam filters request the links of mails to check them.
      const probed = await fetch(url, { method: 'HEAD' });
      assert.equal(probed.status, 200);
      assert.deepEqual(await clients.pushkeysOf(gus), ['gus@example.org']);
      const opened = await fixture.homeserver.open(link);
      assert.equal(opened.status, 200, opened.text);
      assert.match(opened.text, /You are unsubscribed/);
      assert.deepEqual(await clients.pushkeysOf(gus), []);
      const fields = new FormData();
      fields.set('List-Unsubscribe', 'One-Click');
      // RFC 8058 allows both kinds of forms.
      for (const body of [new URLSearchParams({ 'List-Unsubscribe': 'One-Click' }), fields]) {
        await fixture.subscribe(gus, 'gus@example.org');
        const response = await fetch(url, { method: 'POST', body });
        assert.equal(response.status, 200, await response.text());
        assert.deepEqual(await clients.pushkeysOf(gus), []);
      }
      await clients.say(anna, roomId, 'two');
      await fixture.wait(60 * minute);
      assert.equal(fixture.mailsTo('gus').length, 1);
    });

    it('sends a mail whose delay a restart interrupted, without events that the user has answered', async () => {
      const hal = subscriber('hal');
      await clients.say(hal, await talk(hal, ['asked']), 'an answer');
      await talk(hal, ['one']);
      await fixture.wait(2 * minute);
      await fixture.homeserver.server.restart();
      const { text = '' } = (await fixture.mailTo('hal')).content;
      assert.ok(text.includes('one') && !text.includes('asked'), text);
    });
  });

  describe(`a server with enable_notifs: false (${database})`, () => {
    let fixture: MailingServer;
    after(() => fixture.stop());

    it('stores pushers that send mails, mails nothing, and subscribes no new users [option: email.enable_notifs]', async () => {
      fixture = await MailingServer.start(database, { enable_notifs: false });
      const anna = await fixture.homeserver.server.register('anna');
      const ben = await fixture.subscriber('ben');
      const roomId = await fixture.clients.room(anna, [ben]);
      await fixture.clients.say(anna, roomId, 'one');
      await fixture.wait(30 * minute);
      assert.deepEqual(fixture.mailsTo('ben'), []);
      assert.deepEqual(await fixture.clients.pushkeysOf(ben), ['ben@example.org']);
      assert.deepEqual(await fixture.clients.pushkeysOf(await fixture.registerWithAddress('cora')), []);
    });
  });
}

forSelectedDatabases(import.meta.url, (open) => {
  /**
   * Mails to Ann about pending events, which are all unread; their jobs run when the test calls `run`.
   * @param unreadable position of an event that cannot be read
   */
  const openMails = async (unreadable?: number) => {
    const database = await open(pusherMigrations);
    const clock = manualClock();
    const owner = { userId: '@ann:test', deviceId: undefined, setAt: clock.now() };
    const settings = {
      kind: 'email',
      appId: 'm.email',
      pushkey: 'ann@example.org',
      appDisplayName: 'Mail',
      deviceDisplayName: 'Mail',
      profileTag: undefined,
      lang: 'en',
      data: {},
      enabled: true,
    } as const;
    await database.transaction<PusherTables, void>((writer) => writePusher(writer, owner, settings));
    const [pusher] = await readPushers(database.reader<PusherTables>(), [owner.userId]);
    const pusherId = pusher!.id;
    const scheduled: string[] = [];
    const mailed: string[] = [];
    let run: (roomId: string, attempt: number) => Promise<void> = async () => undefined;
    const deps = {
      database,
      clock,
      jobs: {
        register: (_: string, handler: { run: (job: object) => Promise<void> }) => {
          run = (roomId, attempt) => handler.run({ payload: { pusherId, roomId }, attempt });
        },
        schedule: async (_: unknown, { payload }: { payload: { roomId: string } }) => {
          scheduled.push(payload.roomId);
        },
      },
      mails: {
        options: { notif_delay_before_mail: 0 },
        schedule: async (_: unknown, cause: string) => {
          mailed.push(cause);
        },
      },
      log: silentLogger,
      notifications: {
        event: async ({ stream }: { stream: number }) => {
          if (stream === unreadable) throw new Error('The event cannot be read');
          return { stored: {} };
        },
      },
      notificationMails: {
        compose: async (_: unknown, { push }: { push: { roomId: string } }) => push.roomId,
      },
      addresses: { findUser: async () => owner.userId },
    };
    // Registers the job.
    new MailPushers(deps as unknown as MailPushersDeps);
    const add = (roomId: string, from: number, count: number) =>
      database.transaction<PusherTables, void>((writer) => {
        const times = { addedAt: clock.now(), dueAt: clock.now() };
        const rows = Array.from({ length: count }, (_, index) => ({
          stream: from + index,
          nid: from + index,
        }));
        return addPending(
          writer,
          rows.map((row) => ({ ...row, ...times, pusherId, userId: owner.userId, roomId })),
        );
      });
    const throttle = (roomId: string) =>
      database.transaction<PusherTables, void>((writer) => {
        const value = { sent_at: clock.now(), pause: 60 * minute, newest_at: clock.now() };
        return writeThrottle(writer, { pusherId, userId: owner.userId, roomId }, value);
      });
    return { add, throttle, run: (roomId: string, attempt = 1) => run(roomId, attempt), scheduled, mailed };
  };

  describe('MailPushers', () => {
    it('mails about a room whose event comes after 1,000 pending events of a throttled room', async () => {
      const { add, throttle, run, mailed } = await openMails();
      await add('!busy', 1, 1_000);
      await throttle('!busy');
      await add('!quiet', 1_001, 1);
      await run('!quiet');
      assert.deepEqual(mailed, ['!quiet']);
    });

    it('schedules the next mail about a room with more pending events than one mail considers', async () => {
      const { add, run, scheduled, mailed } = await openMails();
      await add('!busy', 1, 1_001);
      await run('!busy');
      assert.deepEqual([mailed, scheduled], [['!busy'], ['!busy']]);
    });

    it('retries a mail with an event that cannot be read, and from the tenth attempt on mails the other events without it', async () => {
      const { add, run, mailed } = await openMails(1);
      await add('!room', 1, 2);
      await assert.rejects(run('!room', 9), /The event cannot be read/);
      await run('!room', 10);
      await run('!room', 1);
      assert.deepEqual(mailed, ['!room']);
    });
  });
});
