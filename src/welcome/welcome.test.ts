import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Reply } from '../kernel/http/index.ts';
import { Pages } from '../kernel/pages/index.ts';
import { Templates } from '../kernel/templates/index.ts';
import { type WelcomeOptions, welcomeRoute, welcomeTemplates } from './index.ts';

const pages = new Pages(new Templates({ folders: [welcomeTemplates] }));

/** Calls the route and returns its response. */
async function welcome(options: Partial<WelcomeOptions>): Promise<Reply> {
  const { handler } = welcomeRoute(
    {
      serverName: 'example.org',
      command: 'npm run hearth --',
      openRegistration: false,
      needsToken: false,
      hasAccounts: async () => false,
      webClientLocation: undefined,
      ...options,
    },
    pages,
  );
  const reply = await handler({} as never);
  assert.ok(reply instanceof Reply);
  return reply;
}

describe('welcomeRoute', () => {
  it('shows a page with the next steps: the first account, and whether registration is open', async () => {
    const page = async (options: Partial<WelcomeOptions>) => String((await welcome(options)).body);
    const closed = await page({});
    assert.match(closed, /<strong>example\.org<\/strong>/);
    assert.match(closed, /<li>Make the first account, .*<code>npm run hearth -- register-user --admin/);
    assert.match(closed, /Registration is closed\. .*makes each account/);
    assert.doesNotMatch(closed, /cannot be changed later/);
    const later = await page({ hasAccounts: async () => true });
    assert.doesNotMatch(later, /first account/);
    assert.match(await page({ openRegistration: true }), /<p>People register with their client\.<\/p>/);
    assert.match(await page({ serverName: 'localhost' }), /cannot be changed later/);
  });

  it('shows how others register with a token, and the commands as the operator calls them', async () => {
    const page = async (options: Partial<WelcomeOptions>) => String((await welcome(options)).body);
    const closed = await page({});
    assert.match(
      closed,
      /<code>registration_requires_token<\/code> in the configuration, restart the\s+server, and make tokens:\s+<code>npm run hearth -- token create<\/code>/,
    );
    const open = await page({ openRegistration: true, needsToken: true });
    assert.match(open, /with their client and a token, .*<code>npm run hearth -- token create<\/code>/);
    const installed = await page({ command: 'hearth', serverName: 'localhost' });
    assert.match(installed, /<code>hearth register-user --admin<\/code>/);
    assert.doesNotMatch(installed, /npm/);
  });

  it('shows a page that loads nothing from other hosts, runs no script, and escapes the server name', async () => {
    const page = String((await welcome({ serverName: '<script>"&' })).body);
    assert.doesNotMatch(page, /<script|https?:|src=|<link/);
    assert.match(page, /<svg class="flame"[^>]*>\s*<path d="/, 'the emblem is a part of the page');
    assert.doesNotMatch(page, /\p{Extended_Pictographic}|&#x1F/iu, 'the page needs no font with emoji');
    assert.match(page, /&lt;script&gt;&quot;&amp;/);
  });

  it('redirects to the web client if one is configured', async () => {
    const { status, headers } = await welcome({ webClientLocation: 'https://app.example.org/' });
    assert.deepEqual([status, headers['Location']], [302, 'https://app.example.org/']);
  });
});
