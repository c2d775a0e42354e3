import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { actionOf, hiddenFieldsOf, sendForm, showPage } from './test/forms.ts';
import { type AccountsOptions, linkIn, ServerWithMail } from './test/server-with-mail.ts';

const path = '/_synapse/client/register';

describe('the mail address on the registration page', () => {
  let fixture: ServerWithMail;
  afterEach(() => fixture.stop());

  const send = (to: string, fields: Record<string, string>) => sendForm(fixture, to, fields);
  const show = async (to: string) => (await showPage(fixture, to)).text;
  const password = { password: 'correct horse', password_again: 'correct horse' };
  const start = async (accounts: AccountsOptions = {}) => {
    fixture = await ServerWithMail.start('sqlite', accounts);
  };

  it('a mail address on the registration page belongs to the account after the user has opened the link of the mail', async () => {
    await start();
    assert.match(await show(path), /name="email"/);
    const begun = await send(path, { username: 'anna', ...password, email: ' anna@example.org ' });
    assert.equal(begun.response.status, 200, begun.text);
    assert.match(begun.text, /A mail is on its way to <strong>anna@example\.org/);
    const next = `/_synapse/client/${actionOf(begun.text)}`;
    const early = await send(next, hiddenFieldsOf(begun.text));
    assert.equal(early.response.status, 401, early.text);
    await fixture.open(linkIn(await fixture.mailServer.mail(0)));
    const done = await send(next, hiddenFieldsOf(begun.text));
    const location = done.response.headers.get('location') ?? '';
    assert.equal(done.response.status, 303, done.text);
    assert.match(await show(`${path}/${location}`), /@anna:test/);
    const { body } = await fixture.login({
      type: 'm.id.thirdparty',
      medium: 'email',
      address: 'anna@example.org',
    });
    assert.equal(body['user_id'], '@anna:test');
  });

  it('the registration page accepts an empty mail address, and refuses an invalid one with the reason', async () => {
    await start();
    const without = await send(path, { username: 'ben', ...password, email: '' });
    assert.equal(without.response.status, 303, without.text);
    const location = without.response.headers.get('location') ?? '';
    assert.match(await show(`/_synapse/client/${location}`), /@ben:test/);
    const wrong = await send(path, { username: 'cora', ...password, email: 'cora' });
    assert.deepEqual([wrong.response.status, /role="alert"/.test(wrong.text)], [400, true]);
    assert.equal(fixture.mailServer.received.length, 0);
  });

  it('the registration page has no field for a required mail address, which another page asks for', async () => {
    await start({ registrations_require_3pid: ['email'] });
    assert.doesNotMatch(await show(path), /name="email"/);
    const begun = await send(path, { username: 'dora', ...password });
    const location = begun.response.headers.get('location') ?? '';
    assert.match(await show(`/_synapse/client/${location}`), /Your mail address/);
  });
});
