import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { linkIn, type Options, ServerWithMail } from './test/server-with-mail.ts';

const path = '/_synapse/client/register';

describe('the mail address on the registration page', () => {
  let at: ServerWithMail;
  afterEach(() => at.stop());

  /** Sends a form of a page. */
  const send = async (to: string, fields: Record<string, string>) => {
    const response = await fetch(at.server.baseUrl + to, {
      method: 'POST',
      body: new URLSearchParams(fields),
      redirect: 'manual',
    });
    return { response, text: await response.text() };
  };
  const show = async (to: string) => (await fetch(at.server.baseUrl + to)).text();
  const hidden = (page: string) =>
    Object.fromEntries(
      [...page.matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)">/g)].map(([, name, value]) => [
        name!,
        value!,
      ]),
    );
  const password = { password: 'correct horse', password_again: 'correct horse' };
  const start = async (accounts: Options = {}) => {
    at = await ServerWithMail.start('sqlite', accounts);
  };

  it('is optional: it is confirmed by a mail and belongs to the account', async () => {
    await start();
    assert.match(await show(path), /name="email"/);
    const begun = await send(path, { username: 'anna', ...password, email: ' anna@example.org ' });
    assert.equal(begun.response.status, 200, begun.text);
    assert.match(begun.text, /A mail is on its way to <strong>anna@example\.org/);
    const [, action] = /<form method="post" action="([^"]+)"/.exec(begun.text) ?? [];
    const next = `/_synapse/client/${action!.replaceAll('&amp;', '&')}`;
    const early = await send(next, hidden(begun.text));
    assert.equal(early.response.status, 401, early.text);
    await at.open(linkIn(await at.mailServer.mail(0)));
    const done = await send(next, hidden(begun.text));
    const location = done.response.headers.get('location') ?? '';
    assert.equal(done.response.status, 303, done.text);
    assert.match(await show(`${path}/${location}`), /@anna:test/);
    const { body } = await at.login({
      type: 'm.id.thirdparty',
      medium: 'email',
      address: 'anna@example.org',
    });
    assert.equal(body['user_id'], '@anna:test');
  });

  it('may be left out, and an invalid one is refused with the reason', async () => {
    await start();
    const without = await send(path, { username: 'ben', ...password, email: '' });
    assert.equal(without.response.status, 303, without.text);
    const location = without.response.headers.get('location') ?? '';
    assert.match(await show(`/_synapse/client/${location}`), /@ben:test/);
    const wrong = await send(path, { username: 'cora', ...password, email: 'cora' });
    assert.deepEqual([wrong.response.status, /role="alert"/.test(wrong.text)], [400, true]);
    assert.equal(at.mailServer.received.length, 0);
  });

  it('has no field where the address is required and so asked for on a page of its own', async () => {
    await start({ registrations_require_3pid: ['email'] });
    assert.doesNotMatch(await show(path), /name="email"/);
    const begun = await send(path, { username: 'dora', ...password });
    const location = begun.response.headers.get('location') ?? '';
    assert.match(await show(`/_synapse/client/${location}`), /Your mail address/);
  });
});
