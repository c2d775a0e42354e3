import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { MailServer } from '../support/network/mail-server.ts';
import { builtHearth } from '../support/servers/built-hearth.ts';

describe('hearth mail test', () => {
  let folder: string;
  let mailServer: MailServer;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'hearth-mail-command-'));
    mailServer = await MailServer.start({ login: { user: 'hearth', pass: 'from a file' } });
  });
  after(async () => {
    await mailServer.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Runs `hearth mail test`. @param email options below `email`; `undefined` leaves `email` out */
  const run = async (email: object | undefined, address = 'anna@example.org') => {
    const path = join(folder, 'homeserver.yaml');
    const mailDefaults = { smtp_host: '127.0.0.1', smtp_port: mailServer.port, notif_from: 'a@example.org' };
    const secrets = { macaroon_secret_key: 'm', form_secret: 'f', registration_shared_secret: 'r' };
    const configuration = { server_name: 'example.org', report_stats: false, ...secrets };
    const mail = email && { email: { ...mailDefaults, ...email } };
    writeFileSync(path, JSON.stringify({ ...configuration, ...mail }));
    const main = await builtHearth();
    const child = spawn(process.execPath, [main, 'mail', 'test', address, '-c', path], { stdio: 'pipe' });
    const out: string[] = [];
    const err: string[] = [];
    child.stdout.on('data', (chunk) => out.push(String(chunk)));
    child.stderr.on('data', (chunk) => err.push(String(chunk)));
    const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
    return { code, out: out.join(''), err: err.join('') };
  };

  it('hearth mail test sends a mail, and logs in to the mail server with the password that a file contains [option: email.smtp_pass_path]', async () => {
    const smtp_pass_path = join(folder, 'password');
    writeFileSync(smtp_pass_path, 'from a file\n');
    const { code, out, err } = await run({ smtp_user: 'hearth', smtp_pass_path });
    assert.deepEqual([code, err], [0, '']);
    assert.match(out, /Sending a mail from a@example.org to anna@example.org by 127.0.0.1:\d+/);
    assert.match(out, /The mail server has accepted the mail/);
    const [mail] = mailServer.received;
    assert.deepEqual([mail?.to, mail?.content.subject], [['anna@example.org'], '[example.org] Mail works']);
    assert.match(mail?.content.html ?? '', /test mail of the homeserver <strong>example.org<\/strong>/);
  });

  it('hearth mail test prints why the mail could not be sent, and exits with code 1', async () => {
    const { code, err } = await run({ smtp_user: 'hearth', smtp_pass: 'wrong' });
    assert.equal(code, 1);
    assert.match(err, /^hearth: The mail server .* did not accept the login. Check email.smtp_user/);
    const withoutTls = await run({ require_transport_security: true });
    assert.deepEqual([withoutTls.code, /does not offer STARTTLS/.test(withoutTls.err)], [1, true]);
  });

  it('hearth mail test says that the configuration has no option email', async () => {
    const { code, err } = await run(undefined);
    assert.equal(code, 1);
    assert.match(err, /has no option email/);
  });

  it('hearth mail test refuses an address that is not a mail address', async () => {
    const { code, err } = await run({}, 'anna');
    assert.deepEqual([code, err], [1, 'hearth: anna is not a mail address\n']);
  });
});
