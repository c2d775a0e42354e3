import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { HearthProcess } from './clients/hearth-process.ts';
import { MailServer } from './support/network/mail-server.ts';
import { callApi } from './support/servers/api-call.ts';

describe('mail and a process that is killed', () => {
  let hearth: HearthProcess | undefined;
  let mailServer: MailServer | undefined;
  after(async () => {
    await hearth?.remove();
    await mailServer?.stop();
  });

  it('is sent after the restart when the kill interrupted it, and not again after the next start', async () => {
    mailServer = await MailServer.start({ afterData: 'never answer' });
    const email = { smtp_host: '127.0.0.1', smtp_port: mailServer.port, notif_from: 'a@example.org' };
    hearth = await HearthProcess.create({ email, rc_3pid_validation: { per_second: 1e9, burst_count: 1e9 } });
    await hearth.start();
    const body = { client_secret: 'secret', email: 'anna@example.org', send_attempt: 1 };
    const ask = () =>
      callApi(hearth!.url, 'POST', '/_matrix/client/v3/register/email/requestToken', { body });
    const { sid } = (await ask()).body;
    await mailServer.attempted(1);
    await hearth.kill();
    mailServer.afterData = 'accept';
    await hearth.start();
    const first = await mailServer.mail(0);
    assert.match(first.content.text ?? '', new RegExp(`sid=${sid}`));
    // A stop waits until the success is on disk; a kill in between would send the mail again, with its message id.
    await hearth.stop();
    await hearth.start();
    assert.equal((await ask()).body['sid'], sid);
    // Another mail, whose receipt shows that the jobs have run.
    body.email = 'ben@example.org';
    await ask();
    const second = await mailServer.mail(1);
    assert.deepEqual(second.to, ['ben@example.org']);
    assert.equal(mailServer.received.length, 2);
  });
});
