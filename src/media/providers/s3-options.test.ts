import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { s3Options } from './s3-options.ts';

describe('s3Options', () => {
  const folder = mkdtempSync(join(tmpdir(), 'hearth-s3-'));
  after(() => rmSync(folder, { recursive: true, force: true }));
  const keys = { access_key_id: 'id', secret_access_key: 'secret' };

  it('returns URLs with the bucket in the path or in the host name, at any endpoint, with an encoded prefix', () => {
    const cases: readonly (readonly [config: Record<string, unknown>, url: string])[] = [
      [{}, 'https://media.s3.us-east-1.amazonaws.com/local/aa'],
      [{ region_name: 'eu-north-1' }, 'https://media.s3.eu-north-1.amazonaws.com/local/aa'],
      [{ path_style: true }, 'https://s3.us-east-1.amazonaws.com/media/local/aa'],
      [{ endpoint_url: 'http://10.0.0.1:9000' }, 'http://10.0.0.1:9000/media/local/aa'],
      [{ endpoint_url: 'https://s.test/', path_style: false }, 'https://media.s.test/local/aa'],
      [{ endpoint_url: 'https://s.test', prefix: '/a b/c+' }, 'https://s.test/media/a%20b/c%2Blocal/aa'],
    ];
    for (const [config, url] of cases)
      assert.equal(s3Options({ bucket: 'media', ...keys, ...config }, {}).urlOf('local/aa'), url);
  });

  it('takes credentials from the options, then from files, then from the environment', () => {
    const [id, secret] = [join(folder, 'id'), join(folder, 'secret')];
    writeFileSync(id, 'id of a file\n');
    writeFileSync(secret, 'secret of a file\n');
    const environment = {
      AWS_ACCESS_KEY_ID: 'id of the environment',
      AWS_SECRET_ACCESS_KEY: 'secret of the environment',
      AWS_SESSION_TOKEN: 'token of the environment',
      AWS_REGION: 'eu-north-1',
    };
    const credentialsOf = (config: object) => {
      const { accessKeyId, secretAccessKey, sessionToken, region } = s3Options(
        { bucket: 'media', ...config },
        environment,
      );
      return [accessKeyId, secretAccessKey, sessionToken, region];
    };
    const files = { access_key_id_path: id, secret_access_key_path: secret };
    assert.deepEqual(credentialsOf({ ...keys, ...files, session_token: 'token' }), [
      'id',
      'secret',
      'token',
      'eu-north-1',
    ]);
    assert.deepEqual(credentialsOf({ ...files, access_key_id: 'id', region_name: 'r' }), [
      'id',
      'secret of a file',
      undefined,
      'r',
    ]);
    assert.deepEqual(credentialsOf({}), [
      'id of the environment',
      'secret of the environment',
      'token of the environment',
      'eu-north-1',
    ]);
    assert.deepEqual(credentialsOf(files).slice(0, 3), ['id of a file', 'secret of a file', undefined]);
  });

  it('rejects a missing bucket, missing keys, an endpoint with a path, and an empty key', () => {
    for (const config of [
      keys,
      { bucket: 'a', ...keys, endpoint_url: 'https://s.test/path' },
      { bucket: 'a' },
    ])
      assert.throws(() => s3Options(config, {}), /config of the s3 storage/);
    assert.throws(() => s3Options({ bucket: 'a', ...keys, access_key_id: '' }, {}), /access_key_id/);
  });
});
