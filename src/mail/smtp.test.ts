import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { sectionDefaults } from '../../test/support/inputs/section-defaults.ts';
import {
  MailServer,
  type MailServerOptions,
  startSilentServer,
} from '../../test/support/network/mail-server.ts';
import { commonTestAuthority } from '../../test/support/network/test-authority.ts';
import { type EmailOptions, mailSection } from './config.ts';
import { MailFailure } from './mail-failure.ts';
import { Smtp } from './smtp.ts';

const authority = commonTestAuthority();

describe('Smtp', () => {
  let server: MailServer;
  afterEach(() => server.stop());

  const start = async (options: MailServerOptions = {}, names: readonly string[] = ['127.0.0.1']) => {
    server = await MailServer.start({ ...authority.issue(...names), ...options });
  };
  const smtp = (email: Partial<EmailOptions> = {}, timeout?: number) => {
    const given = { smtp_host: '127.0.0.1', smtp_port: server.port, notif_from: 'a@example.org', ...email };
    const options = sectionDefaults(mailSection, { email: given }).email!;
    return new Smtp(options, { authorities: [authority.pem], ...(timeout !== undefined && { timeout }) });
  };
  const mail = {
    to: 'anna@example.org',
    subject: 'Hello',
    html: '<p>Hello</p>',
    text: 'Hello',
    messageId: 'one@test',
  };
  const failure = async (sending: Promise<void>) => {
    const error = await sending.then(
      () => assert.fail('the mail was sent'),
      (reason: unknown) => reason,
    );
    assert.ok(error instanceof MailFailure);
    return error;
  };

  it('sends a mail with an HTML part and a text part to the mail server [option: email.smtp_host, email.smtp_port]', async () => {
    await start();
    await smtp().send(mail);
    const { from, to, content } = server.received[0]!;
    assert.deepEqual([from, to], ['a@example.org', ['anna@example.org']]);
    assert.deepEqual([content.subject, content.messageId], ['Hello', '<one@test>']);
    assert.deepEqual([content.text?.trim(), content.html?.trim()], ['Hello', '<p>Hello</p>']);
    assert.equal(content.headers.find(({ key }) => key === 'auto-submitted')?.value, 'auto-generated');
  });

  it('uses port 25 by default, and port 465 with TLS from the first byte [option: email.smtp_port, email.force_tls]', async () => {
    await start();
    assert.equal(smtp({ smtp_port: null }).server.port, 25);
    assert.equal(smtp({ smtp_port: null, force_tls: true }).server.port, 465);
  });

  it('fills in the name of the application in the sender [option: email.notif_from, email.app_name]', async () => {
    await start();
    await smtp({ notif_from: '%(app)s <no-reply@example.org>', app_name: 'Hearth Fire' }).send(mail);
    assert.deepEqual(server.received[0]!.content.from, {
      name: 'Hearth Fire',
      address: 'no-reply@example.org',
    });
  });

  it('logs in with the user name and the password [option: email.smtp_user, email.smtp_pass]', async () => {
    await start({ startTls: true, login: { user: 'hearth', pass: 'secret' } });
    await smtp({ smtp_user: 'hearth', smtp_pass: 'secret' }).send(mail);
    assert.deepEqual([server.received[0]!.user, server.received[0]!.isSecure], ['hearth', true]);
    const error = await failure(smtp({ smtp_user: 'hearth', smtp_pass: 'wrong' }).send(mail));
    assert.match(error.message, /did not accept the login. Check email.smtp_user and email.smtp_pass/);
    assert.equal(error.isPermanent, false);
  });

  it('upgrades the connection to TLS when the mail server offers it, and never with enable_tls: false [option: email.enable_tls]', async () => {
    await start({ startTls: true });
    await smtp().send(mail);
    await smtp({ enable_tls: false }).send(mail);
    assert.deepEqual(
      server.received.map(({ isSecure }) => isSecure),
      [true, false],
    );
  });

  it('sends nothing without STARTTLS when transport security is required [option: email.require_transport_security]', async () => {
    await start();
    await smtp().send(mail);
    const error = await failure(smtp({ require_transport_security: true }).send(mail));
    assert.match(error.message, /STARTTLS, which email.require_transport_security requires/);
    assert.equal(server.attempts, 1);
  });

  it('speaks TLS from the first byte with force_tls [option: email.force_tls]', async () => {
    await start({ secure: true });
    await smtp({ force_tls: true }).send(mail);
    assert.equal(server.received[0]!.isSecure, true);
  });

  it('explains that a mail server does not begin with TLS', async () => {
    await start();
    const error = await failure(smtp({ force_tls: true }).send(mail));
    assert.match(error.message, /does not begin with TLS. Turn off email.force_tls/);
  });

  it('requires a certificate for the name in tlsname [option: email.tlsname]', async () => {
    await start({ startTls: true }, ['mail.example.org']);
    const error = await failure(smtp().send(mail));
    assert.match(
      error.message,
      /certificate of the mail server .* is not accepted for 127.0.0.1: .*email.tlsname/,
    );
    await smtp({ tlsname: 'mail.example.org' }).send(mail);
    assert.equal(server.received.length, 1);
    await failure(smtp({ tlsname: 'other.example.org' }).send(mail));
    assert.equal(server.attempts, 1);
  });

  it('explains that no mail server accepts connections at the host and port', async () => {
    await start();
    const sender = smtp();
    await server.stop();
    assert.match((await failure(sender.send(mail))).message, /^Nothing accepts connections at 127.0.0.1:/);
  });

  it('explains that the host is unknown', async () => {
    await start();
    const { message } = await failure(smtp({ smtp_host: 'mail.invalid' }).send(mail));
    assert.match(message, /mail.invalid cannot be found in the DNS. Check email.smtp_host/);
  });

  it('gives up when the mail server sends nothing until the timeout', async () => {
    await start();
    const silent = await startSilentServer();
    try {
      const { message } = await failure(smtp({ smtp_port: silent.port }, 200).send(mail));
      assert.match(message, /did not answer in time. A firewall may block the port/);
    } finally {
      await silent.stop();
    }
  });

  it('sends a mail to a mail server that answers slowly, and gives up when a mail server never answers after the content of the mail', async () => {
    await start();
    server.replyDelay = 100;
    await smtp().send(mail);
    assert.equal(server.received.length, 1);
    server.replyDelay = 0;
    server.afterData = 'never answer';
    const error = await failure(smtp({}, 200).send(mail));
    assert.match(error.message, /did not answer in time/);
    assert.equal(error.isPermanent, false);
  });

  it('reports the refusal of a recipient (550) or of a mail (554) as permanent, and the status 451 for a mail as temporary', async () => {
    await start();
    server.unknownRecipients.add('nobody@example.org');
    const unknown = await failure(smtp().send({ ...mail, to: 'nobody@example.org' }));
    assert.match(unknown.message, /rejected the sender or the recipient.* It answered: 550 No such mailbox/);
    assert.equal(unknown.isPermanent, true);
    server.afterData = 'reject permanently';
    const spam = await failure(smtp().send(mail));
    assert.deepEqual([spam.isPermanent, /It answered: 554 This is spam/.test(spam.message)], [true, true]);
    server.afterData = 'reject';
    assert.equal((await failure(smtp().send(mail))).isPermanent, false);
  });

  it('reports a connection that the mail server closes before its answer', async () => {
    await start({ afterData: 'close' });
    const error = await failure(smtp().send(mail));
    assert.match(error.message, /closed the connection/);
    assert.equal(error.isPermanent, false);
  });

  it('stops sending when it is aborted', async () => {
    await start({ afterData: 'never answer' });
    const stopping = new AbortController();
    const sending = failure(smtp().send(mail, stopping.signal));
    await server.attempted(1);
    stopping.abort();
    await sending;
  });

  it('sends to no second address, whatever characters the address contains', async () => {
    await start();
    for (const to of [
      'a@example.org, b@example.org',
      'A <b@example.org>',
      'a@example.org\r\nBcc: b@example.org',
    ])
      await smtp()
        .send({ ...mail, to })
        .catch(() => undefined);
    for (const { to } of server.received) assert.equal(to.includes('b@example.org'), false, to.join(' '));
  });
});
