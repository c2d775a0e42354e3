import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { welcomePage } from './page.ts';

describe('the page at /', () => {
  it('says what to do next', () => {
    const closed = welcomePage({ serverName: 'example.org', openRegistration: false });
    assert.match(closed, /<strong>example\.org<\/strong>/);
    assert.match(closed, /Make the first account/);
    assert.match(welcomePage({ serverName: 'example.org', openRegistration: true }), /Register an account/);
  });

  it('needs nothing from elsewhere and runs no script', () => {
    const page = welcomePage({ serverName: '<script>"&', openRegistration: false });
    assert.doesNotMatch(page, /<script|https?:|src=|<link/);
    assert.match(page, /&lt;script&gt;&quot;&amp;/);
  });
});
