import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { EmailOptions } from '../mail/index.ts';
import { parametersOf, ServerWithMail } from './test/server-with-mail.ts';

/**
 * Each purpose of a mail, and the path at which clients request the mail. The names of the options for the mail begin
 * with its purpose.
 */
const purposes = [
  ['registration', 'register'],
  ['password_reset', 'account/password'],
  ['add_threepid', 'account/3pid'],
] as const;

describe('templates of mails and of the pages that they lead to', () => {
  let fixture: ServerWithMail;
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'hearth-mail-templates-'));
  });
  afterEach(async () => {
    await fixture.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text);
  const start = async (
    email: Partial<EmailOptions>,
    { accounts = {}, customFolder = null }: { accounts?: object; customFolder?: string | null } = {},
  ) => {
    const mail = { templates: { custom_template_directory: customFolder } };
    fixture = await ServerWithMail.start('sqlite', accounts, { email, mail });
    await fixture.addAddress(await fixture.server.register('anna'), 'anna@example.org');
  };
  /** The address that a mail is requested for. */
  const addressFor = (purpose: string) => `${purpose === 'password_reset' ? 'anna' : purpose}@example.org`;

  it('templates of mails are searched in the folder of the operator first [option: templates.custom_template_directory]', async () => {
    write('registration.html', '<b>{{ server_name }}</b> <a href="{{ link }}">{{ link }}</a>');
    write('registration.txt', '{{ app_name }}: {{ link }}');
    fixture = await ServerWithMail.start(
      'sqlite',
      {},
      { mail: { templates: { custom_template_directory: folder } } },
    );
    await fixture.receiveLink('register', 'ben@example.org');
    const { content } = fixture.mailServer.received[0]!;
    assert.match(content.html ?? '', /^<b>test<\/b> <a href="https:/);
    assert.match(content.text ?? '', /^Matrix: https:/);
  });

  it('options set the file names of the templates of mails, in custom_template_directory and in the older option template_dir [option: email.template_dir, email.registration_template_html, email.registration_template_text, email.password_reset_template_html, email.password_reset_template_text, email.add_threepid_template_html, email.add_threepid_template_text]', async () => {
    const names: Record<string, string> = {};
    mkdirSync(join(folder, 'older'));
    for (const [purpose] of purposes) {
      names[`${purpose}_template_html`] = `own_${purpose}.html`;
      names[`${purpose}_template_text`] = `own_${purpose}.txt`;
      write(`own_${purpose}.html`, `<i>${purpose}</i> {{ link }}`);
      write(`older/own_${purpose}.txt`, `text of ${purpose} {{ link }}`);
    }
    await start({ template_dir: join(folder, 'older'), ...names }, { customFolder: folder });
    for (const [purpose, path] of purposes) {
      await fixture.receiveLink(path, addressFor(purpose));
      const { content } = fixture.mailServer.received.at(-1)!;
      assert.match(content.html ?? '', new RegExp(`^<i>${purpose}</i>`));
      assert.match(content.text ?? '', new RegExp(`^text of ${purpose}`));
    }
  });

  it('options choose the file names of the templates of the pages of success and failure [option: email.registration_template_success_html, email.registration_template_failure_html, email.password_reset_template_success_html, email.password_reset_template_failure_html, email.add_threepid_template_success_html, email.add_threepid_template_failure_html]', async () => {
    const names: Record<string, string> = {};
    for (const [purpose] of purposes) {
      names[`${purpose}_template_success_html`] = `${purpose}_done.html`;
      names[`${purpose}_template_failure_html`] = `${purpose}_not_done.html`;
      write(`${purpose}_done.html`, `done: ${purpose}`);
      write(`${purpose}_not_done.html`, `not done: ${purpose}, {{ failure_reason }}`);
    }
    await start({ template_dir: folder, ...names });
    for (const [purpose, path] of purposes) {
      const { link } = await fixture.receiveLink(path, addressFor(purpose), { client_secret: 'other' });
      const form = purpose === 'password_reset' ? parametersOf(link) : undefined;
      assert.equal((await fixture.open(link, form)).text, `done: ${purpose}`);
      const wrong = new URL(link);
      wrong.searchParams.set('token', 'wrong');
      const { text } = await fixture.open(wrong.href);
      assert.equal(text, `not done: ${purpose}, This link or validation is not valid, or has expired`);
    }
  });

  it('the mail to an address that belongs to an account names the server and the client [option: email.already_in_use_template_html, email.already_in_use_template_text, email.client_base_url]', async () => {
    // The owner receives the mail only where responses do not tell whether the address belongs to an account.
    const accounts = { request_token_inhibit_3pid_errors: true };
    await start({ client_base_url: 'https://client.example.org/?a=b&c=d' }, { accounts });
    const before = fixture.mailServer.received.length;
    await fixture.requestMail('register', 'anna@example.org');
    const { content } = await fixture.mailServer.mail(before);
    assert.match(
      content.html ?? '',
      /<a class="button" href="https:\/\/client\.example\.org\/\?a=b&amp;c=d">/,
    );
    assert.match(content.text ?? '', / {4}https:\/\/client\.example\.org\/\?a=b&c=d\n/);
    for (const text of [content.html, content.text]) {
      assert.match(text ?? '', /The address belongs to an account there already/);
      assert.match(text ?? '', /for an account on\s+(<strong>)?test\b/);
    }
    await fixture.stop();
    write('own.html', 'own HTML');
    write('own.txt', 'own text');
    const names = { already_in_use_template_html: 'own.html', already_in_use_template_text: 'own.txt' };
    await start({ template_dir: folder, ...names }, { accounts });
    await fixture.requestMail('register', 'anna@example.org');
    const customMail = (await fixture.mailServer.mail(1)).content;
    assert.deepEqual([customMail.html?.trim(), customMail.text?.trim()], ['own HTML', 'own text']);
  });
});
