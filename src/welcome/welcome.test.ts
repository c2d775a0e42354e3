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
    { serverName: 'example.org', openRegistration: false, webClientLocation: undefined, ...options },
    pages,
  );
  const reply = await handler({} as never);
  assert.ok(reply instanceof Reply);
  return reply;
}

describe('welcomeRoute', () => {
  it('shows a page that tells what to do next', async () => {
    const closed = String((await welcome({})).body);
    assert.match(closed, /<strong>example\.org<\/strong>/);
    assert.match(closed, /<li>Make the first account on the server: <code>npm run/);
    const open = String((await welcome({ openRegistration: true })).body);
    assert.match(open, /<li>Register an account with your client, or make .* on the server: <code>npm run/);
  });

  it('shows a page that loads nothing from other hosts, runs no script, and escapes the server name', async () => {
    const page = String((await welcome({ serverName: '<script>"&' })).body);
    assert.doesNotMatch(page, /<script|https?:|src=|<link/);
    assert.match(page, /&lt;script&gt;&quot;&amp;/);
  });

  it('redirects to the web client if one is configured', async () => {
    const { status, headers } = await welcome({ webClientLocation: 'https://app.example.org/' });
    assert.deepEqual([status, headers['Location']], [302, 'https://app.example.org/']);
  });
});
