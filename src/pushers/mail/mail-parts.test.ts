import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { clientLink } from './client-links.ts';
import { throttleAfter } from './mail-throttle.ts';
import { messageText } from './message-text.ts';
import { UnsubscribeLinks } from './unsubscribe-links.ts';

describe('clientLink', () => {
  it('returns links to rooms and events in the forms of matrix.to and of web clients', () => {
    assert.equal(clientLink('https://matrix.to', '!a:b', '$c'), 'https://matrix.to/#/!a%3Ab/%24c');
    assert.equal(clientLink('https://x.org', '!a:b'), 'https://x.org/#/room/!a%3Ab');
    assert.equal(clientLink('https://x.org/app?y=z', '!a:b'), 'https://x.org/app/?y=z#/room/!a%3Ab');
  });
});

describe('throttleAfter', () => {
  const hour = 3_600_000;
  it('pauses a room for 10 minutes, then for a day, and for 10 minutes again after 12 quiet hours', () => {
    const first = throttleAfter(undefined, 1_000, { oldest: 0, newest: 500 });
    assert.deepEqual(first, { sent_at: 1_000, pause: hour / 6, newest_at: 500 });
    const second = throttleAfter(first, hour, { oldest: hour / 2, newest: hour });
    assert.deepEqual(second, { sent_at: hour, pause: 24 * hour, newest_at: hour });
    const third = throttleAfter(second, 26 * hour, { oldest: 2 * hour, newest: 25 * hour });
    assert.equal(third.pause, 24 * hour);
    assert.equal(throttleAfter(third, 60 * hour, { oldest: 38 * hour, newest: 38 * hour }).pause, hour / 6);
  });
});

describe('messageText', () => {
  it('shows texts and file names, hides the messages of encrypted rooms, and cuts long texts', () => {
    const content = { msgtype: 'm.text', body: 'Hello' };
    assert.equal(messageText('m.room.message', content, false), 'Hello');
    assert.equal(messageText('m.room.message', content, true), 'Encrypted message');
    assert.equal(messageText('m.room.encrypted', { ciphertext: 'x' }, false), 'Encrypted message');
    const image = { msgtype: 'm.image', body: 'cat.png' };
    assert.equal(messageText('m.room.message', image, false), 'Sent a picture: cat.png');
    assert.equal(messageText('m.sticker', {}, false), undefined);
    for (const body of [undefined, 5, ' \n'])
      assert.equal(messageText('m.room.message', { msgtype: 'm.text', body: body! }, false), undefined);
    const long = messageText('m.room.message', { msgtype: 'm.text', body: 'a'.repeat(5_000) }, false)!;
    assert.equal(long.length, 1_002);
  });
});

describe('UnsubscribeLinks', () => {
  it('makes links that are valid for one pusher of one user, and invalid after a change of macaroon_secret_key', () => {
    const links = (key: string) => new UnsubscribeLinks('https://x.org', Buffer.from(key));
    const anna = { userId: '@anna:test', appId: 'm.email', pushkey: 'anna@example.org' };
    const token = new URL(links('key').of(anna)).searchParams.get('token')!;
    assert.equal(links('key').isValid(anna, token), true);
    assert.equal(links('another key').isValid(anna, token), false);
    for (const change of [{ userId: '@ben:test' }, { appId: 'm.mail' }, { pushkey: 'ben@example.org' }])
      assert.equal(links('key').isValid({ ...anna, ...change }, token), false);
    for (const guess of ['', 'a', `${token}a`]) assert.equal(links('key').isValid(anna, guess), false);
  });
});
