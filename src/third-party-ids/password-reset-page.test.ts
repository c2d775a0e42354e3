import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { actionOf, hiddenFieldsOf, sendForm, showPage } from './test/forms.ts';
import { type AccountsOptions, linkIn, parametersOf, ServerWithMail } from './test/server-with-mail.ts';

const path = '/_synapse/client/password_reset';

describe('the page where users set a new password', () => {
  let fixture: ServerWithMail;
  afterEach(() => fixture.stop());
  const start = async (options: AccountsOptions = {}) => {
    fixture = await ServerWithMail.start('sqlite', options);
    const anna = await fixture.server.register('anna');
    await fixture.addAddress(anna, 'anna@example.org');
    return anna;
  };
  const form = { email: 'anna@example.org', password: 'battery staple', password_again: 'battery staple' };
  const login = (password: string) => fixture.login({ type: 'm.id.user', user: 'anna' }, password);

  it('sets the password once, after the user has opened the link of the mail and confirmed the reset, and ends all sessions', async () => {
    const { token } = await start();
    assert.match(
      (await showPage(fixture, '/_matrix/static/client/login/')).text,
      new RegExp(`href="${path}"`),
    );
    assert.equal((await showPage(fixture, path)).status, 200);
    const begun = await sendForm(fixture, path, { ...form, email: ' Anna@Example.org ' });
    assert.equal(begun.response.status, 200, begun.text);
    assert.match(begun.text, /A mail is on its way to/);
    assert.doesNotMatch(begun.text, /battery staple/);
    const next = `/_synapse/client/${actionOf(begun.text)}`;
    const fields = hiddenFieldsOf(begun.text);
    const { session } = fields;
    const sessionPage = `${next}?session=${session}`;
    assert.equal((await sendForm(fixture, next, fields)).response.status, 401);
    assert.match((await showPage(fixture, sessionPage)).text, /name="email"/);
    const link = linkIn(await fixture.mailServer.mail(1));
    assert.match((await fixture.open(link)).text, /Yes, it was me/);
    assert.equal((await sendForm(fixture, next, fields)).response.status, 401);
    assert.equal((await login('battery staple')).status, 403);
    assert.equal((await fixture.open(link, parametersOf(link))).status, 200);
    const completed = await sendForm(fixture, next, fields);
    assert.equal(completed.response.status, 303, completed.text);
    assert.equal(completed.response.headers.get('location'), `continue?session=${session}`);
    assert.match((await showPage(fixture, sessionPage)).text, /Your new password is set/);
    assert.deepEqual(
      [(await login('battery staple')).status, (await login('correct horse')).status],
      [200, 403],
    );
    assert.equal(
      (await fixture.server.api('GET', '/_matrix/client/v3/account/whoami', { token })).status,
      401,
    );
    // The page may be shown again, and sets nothing more.
    const another = await fixture.validate('account/password', 'anna@example.org', 'another');
    const auth = { type: 'm.login.email.identity', threepid_creds: another };
    assert.equal((await fixture.post('/account/password', { new_password: 'newest', auth })).status, 200);
    assert.match((await showPage(fixture, sessionPage)).text, /Your new password is set/);
    assert.equal((await login('newest')).status, 200);
  });

  it('says when passwords differ or the address is unknown, and refuses forms from other sites and sessions of other operations', async () => {
    await start();
    const different = await sendForm(fixture, path, { ...form, password_again: 'other' });
    assert.deepEqual([different.response.status, /not the same/.test(different.text)], [400, true]);
    assert.match(different.text, /value="anna@example.org"/);
    const unknown = await sendForm(fixture, path, { ...form, email: 'ben@example.org' });
    assert.deepEqual(
      [unknown.response.status, /No account has this address/.test(unknown.text)],
      [400, true],
    );
    const foreign = await sendForm(fixture, path, form, { 'sec-fetch-site': 'cross-site' });
    assert.equal(foreign.response.status, 403);
    const registration = await fixture.post('/register', { username: 'eve', password: 'battery staple' });
    const session = String(registration.body['session']);
    assert.equal((await showPage(fixture, `${path}/continue?session=${session}`)).status, 403);
    assert.equal((await showPage(fixture, `${path}/continue?session=unknown`)).status, 401);
  });

  it('shows the same page for known and unknown addresses with request_token_inhibit_3pid_errors', async () => {
    await start({ request_token_inhibit_3pid_errors: true });
    const pageWithoutSecrets = async (email: string) => {
      const { response, text } = await sendForm(fixture, path, { ...form, email });
      const secrets = Object.values(hiddenFieldsOf(text)).filter((value) => value !== email);
      return [
        response.status,
        secrets.reduce((page, secret) => page.replaceAll(secret, '…'), text).replaceAll(email, '@'),
      ];
    };
    assert.deepEqual(
      await pageWithoutSecrets('ben@example.org'),
      await pageWithoutSecrets('anna@example.org'),
    );
    assert.deepEqual((await fixture.mailServer.mail(1)).to, ['anna@example.org']);
  });

  it('responds 403 on a server without mail, and the login page there has no link to the page', async () => {
    fixture = await ServerWithMail.start('sqlite', {}, { email: null });
    assert.equal((await showPage(fixture, path)).status, 403);
    assert.equal((await sendForm(fixture, path, form)).response.status, 403);
    assert.doesNotMatch(
      (await showPage(fixture, '/_matrix/static/client/login/')).text,
      /Forgot your password/,
    );
  });
});
