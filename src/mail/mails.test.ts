import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, it } from 'node:test';
import { type ManualClock, manualClock } from '../../test/support/clocks/manual-clock.ts';
import { forSelectedDatabases } from '../../test/support/databases/databases.ts';
import { sectionDefaults } from '../../test/support/inputs/section-defaults.ts';
import { MailServer } from '../../test/support/network/mail-server.ts';
import type { Database } from '../kernel/database/index.ts';
import { Jobs, jobMigrations } from '../kernel/jobs/index.ts';
import { silentLogger } from '../kernel/observability/index.ts';
import { systemRandomness } from '../kernel/randomness.ts';
import { Templates } from '../kernel/templates/index.ts';
import { mailSection } from './config.ts';
import { type Mail, Mails, mailTemplateFolders, mailTemplates } from './index.ts';

interface Fixture {
  readonly database: Database;
  readonly clock: ManualClock;
  /** Port of the mail server. */
  readonly port: number;
}

const folder = mkdtempSync(join(tmpdir(), 'hearth-mails-'));
after(() => rmSync(folder, { recursive: true, force: true }));

forSelectedDatabases(import.meta.url, (open) => {
  let server: MailServer | undefined;
  const running: Jobs[] = [];
  afterEach(async () => {
    await server?.stop();
    server = undefined;
    for (const jobs of running.splice(0)) await jobs.stop();
  });

  const setUp = async () => {
    server = await MailServer.start();
    const fixture = { database: await open(jobMigrations), clock: manualClock(), port: server.port };
    return { ...fixture, ...(await startMails(fixture)) };
  };
  /** Starts the jobs of a server on the database. */
  const startMails = async ({ database, clock, port }: Fixture) => {
    const jobs = new Jobs({ database, clock, log: silentLogger, isOnlyProcess: true });
    const given = { smtp_host: '127.0.0.1', smtp_port: port, notif_from: 'a@example.org' };
    const email = sectionDefaults(mailSection, { email: given }).email!;
    const templates = new Templates({ folders: mailTemplateFolders(folder, email, [mailTemplates]) });
    const randomness = systemRandomness;
    const deps = { jobs, clock, randomness, templates, serverName: 'test:8448', log: silentLogger };
    const mails = new Mails(deps, email);
    await jobs.start();
    running.push(jobs);
    const schedule = (mail: Partial<Mail> = {}) =>
      database.transaction((writer) => mails.schedule(writer, { ...testMail, ...mail }));
    return { jobs, mails, schedule };
  };
  const testMail: Mail = {
    to: 'anna@example.org',
    html: 'mail_test.html',
    text: 'mail_test.txt',
    subject: '[%(app)s] Hello from %(server_name)s',
    values: {},
  };

  it('sends a scheduled mail once, with a message id that ends in the name of the server', async () => {
    const { jobs, schedule } = await setUp();
    await schedule();
    await jobs.settled();
    const { content } = server!.received[0]!;
    assert.equal(content.subject, '[Matrix] Hello from test:8448');
    assert.match(content.messageId ?? '', /^<\w{24}@test>$/);
    assert.match(content.text ?? '', /^Mail works/);
    assert.match(content.html ?? '', /<h1>Mail works<\/h1>/);
    assert.equal(server!.attempts, 1);
  });

  it('sends no mail whose transaction was rolled back', async () => {
    const { database, jobs, mails } = await setUp();
    const failing = database.transaction(async (writer) => {
      await mails.schedule(writer, testMail);
      throw new Error('no');
    });
    await assert.rejects(failing, /no/);
    await jobs.settled();
    assert.equal(server!.attempts, 0);
  });

  it('tries again with the same message id until the mail server accepts the mail', async () => {
    const { clock, jobs, schedule } = await setUp();
    server!.afterData = 'reject';
    await schedule();
    await jobs.settled();
    server!.afterData = 'close';
    clock.advance(2_000);
    await jobs.settled();
    assert.equal(server!.attempts, 2);
    server!.afterData = 'accept';
    clock.advance(10_000);
    await jobs.settled();
    clock.advance(86_400_000);
    await jobs.settled();
    assert.deepEqual([server!.attempts, server!.received.length], [3, 1]);
    assert.deepEqual(await jobs.list({ kind: 'mail/send' }), []);
  });

  it('does not try again when the mail server rejects the mail permanently', async () => {
    const { clock, jobs, schedule } = await setUp();
    server!.afterData = 'reject permanently';
    await schedule();
    await jobs.settled();
    clock.advance(86_400_000);
    await jobs.settled();
    assert.equal(server!.attempts, 1);
    assert.deepEqual(await jobs.list({ kind: 'mail/send' }), []);
  });

  it('sends a mail after a crash that interrupted it, and does not send it again after another crash', async () => {
    const fixture = await setUp();
    server!.afterData = 'never answer';
    await fixture.schedule();
    await server!.attempted(1);
    // The first server is abandoned with its connection open, like one that was killed.
    server!.afterData = 'accept';
    const second = await startMails(fixture);
    await second.jobs.settled();
    fixture.clock.advance(1_000);
    await second.jobs.settled();
    assert.equal(server!.received.length, 1);
    const third = await startMails(fixture);
    await third.jobs.settled();
    assert.deepEqual([server!.attempts, server!.received.length], [2, 1]);
  });

  it('drops a mail that could not be sent before it expired', async () => {
    const { clock, jobs, schedule } = await setUp();
    server!.afterData = 'reject';
    await schedule({ expiresAt: clock.now() + 5_000 });
    await jobs.settled();
    server!.afterData = 'accept';
    clock.advance(10_000);
    await jobs.settled();
    assert.equal(server!.attempts, 1);
    assert.deepEqual(await jobs.list({ kind: 'mail/send' }), []);
  });

  it('sends nothing to the mail server for a mail with isDecoy', async () => {
    const { jobs, schedule } = await setUp();
    await schedule({ isDecoy: true });
    await jobs.settled();
    assert.equal(server!.attempts, 0);
  });

  it('escapes values in the HTML part, not in the text part and the subject', async () => {
    writeFileSync(join(folder, 'own.html'), '<p>{{ name }}</p>');
    writeFileSync(join(folder, 'own.txt'), '{{ name }}');
    const { jobs, schedule } = await setUp();
    const name = '<script>alert(1)</script>\r\nBcc: eve@example.org';
    const mailWithName = { html: 'own.html', text: 'own.txt', values: { name } };
    await schedule({ ...mailWithName, subject: 'From %(person)s', subjectValues: { person: name } });
    await jobs.settled();
    const { content, to } = server!.received[0]!;
    assert.match(content.html ?? '', /&lt;script&gt;alert\(1\)&lt;\/script&gt;/);
    assert.match(content.text ?? '', /<script>/);
    assert.match(content.subject ?? '', /^From <script>/);
    assert.deepEqual([to, content.bcc], [['anna@example.org'], undefined]);
  });

  it('removes from the names in subjects the characters that begin a line or change the direction of the text after the name', async () => {
    const { jobs, schedule } = await setUp();
    const person = '\u202eAnna\u2066\u2028\tשלום 👩‍💻';
    await schedule({ subject: 'From %(person)s, by %(app)s', subjectValues: { person } });
    await jobs.settled();
    assert.equal(server!.received[0]!.content.subject, 'From Anna שלום 👩‍💻, by Matrix');
  });
});
