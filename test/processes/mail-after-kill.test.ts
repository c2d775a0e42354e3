import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { linkIn } from '../../src/third-party-ids/test/server-with-mail.ts';
import { HearthProcess } from '../clients/hearth-process.ts';
import { MailServer } from '../support/network/mail-server.ts';
import { callApi } from '../support/servers/api-call.ts';

describe('mails of a server that is killed', () => {
  let hearth: HearthProcess | undefined;
  let mailServer: MailServer | undefined;
  after(async () => {
    await hearth?.remove();
    await mailServer?.stop();
  });

  const call = async (method: string, path: string, body: object, token?: string) => {
    const request = { body, ...(token !== undefined && { token }) };
    const answer = await callApi(hearth!.url, method, `/_matrix/client/v3${path}`, request);
    assert.equal(answer.status, 200, answer.raw);
    return answer.body;
  };
  const requestToken = (email: string, client_secret = 'secret') =>
    call('POST', '/register/email/requestToken', { client_secret, email, send_attempt: 1 });
  const register = async (username: string, auth: object) =>
    String((await call('POST', '/register', { username, password: 'correct horse', auth }))['access_token']);
  const mailsTo = (address: string) => mailServer!.received.filter(({ to }) => to[0] === address);

  it('sends an interrupted validation mail and a pending mail about missed events after a kill, and neither of them again after the next restart', async () => {
    mailServer = await MailServer.start();
    hearth = await HearthProcess.create({
      email: {
        smtp_host: '127.0.0.1',
        smtp_port: mailServer.port,
        notif_from: 'a@example.org',
        enable_notifs: true,
        notif_delay_before_mail: '1s',
      },
      rc_3pid_validation: { per_second: 1e9, burst_count: 1e9 },
    });
    await hearth.start();
    // Ben receives mails about missed events.
    const { sid } = await requestToken('ben@example.org');
    const { pathname, search } = new URL(linkIn(await mailServer.mail(0)));
    assert.equal((await fetch(hearth.url + pathname + search)).status, 200);
    const threepid_creds = { sid, client_secret: 'secret' };
    const ben = await register('ben', { type: 'm.login.email.identity', threepid_creds });
    const anna = await register('anna', { type: 'm.login.dummy' });
    const { room_id } = await call('POST', '/createRoom', { preset: 'public_chat' }, anna);
    const room = encodeURIComponent(String(room_id));
    await call('POST', `/join/${room}`, {}, ben);

    mailServer.afterData = 'never answer';
    const attempts = mailServer.attempts;
    const interrupted = await requestToken('cora@example.org');
    await mailServer.attempted(attempts + 1);
    const body = { msgtype: 'm.text', body: 'Hello' };
    await call('PUT', `/rooms/${room}/send/m.room.message/1`, body, anna);
    await hearth.kill();
    mailServer.afterData = 'accept';
    await hearth.start();
    await mailServer.mail(2);
    const [validationMail] = mailsTo('cora@example.org');
    const [, mailAboutMissed] = mailsTo('ben@example.org');
    assert.match(validationMail?.content.text ?? '', new RegExp(`sid=${interrupted['sid']}`));
    assert.match(mailAboutMissed?.content.text ?? '', /You have missed a message[\s\S]*Hello/);

    // A stop waits until it is on disk that the mails were sent. After a kill before that, they would be sent again.
    await hearth.stop();
    await hearth.start();
    assert.equal((await requestToken('cora@example.org'))['sid'], interrupted['sid']);
    // The receipt of this mail shows that the jobs have run.
    await requestToken('dora@example.org');
    const last = await mailServer.mail(3);
    assert.deepEqual(last.to, ['dora@example.org']);
    assert.equal(mailServer.received.length, 4);
  });
});
