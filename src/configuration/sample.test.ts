import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parse } from 'yaml';
import { loadConfigurationSources } from './load.ts';
import { sampleConfiguration } from './sample.ts';

const choices = {
  serverName: 'example.org:8448',
  command: 'npm run hearth --',
  dataDirectory: '/var/lib/hearth/',
  macaroonSecretKey: 'm: "#\\',
  formSecret: 'f',
};

describe('sampleConfiguration', () => {
  it('passes a strict check without remarks', () => {
    for (const publicBaseurl of [{}, { publicBaseurl: 'https://matrix.example.org/' }]) {
      const text = sampleConfiguration({ ...choices, ...publicBaseurl });
      const sources = [{ file: 'homeserver.yaml', text }];
      const { errors, warnings, notices } = loadConfigurationSources(sources, {
        environment: {},
        directory: '.',
      });
      assert.deepEqual([errors, warnings, notices], [[], [], []]);
    }
  });

  it('contains the chosen values, whatever characters are in them', () => {
    const text = sampleConfiguration({ ...choices, port: 8080, bindAddresses: ['0.0.0.0'] });
    const values = parse(text);
    assert.equal(values.server_name, 'example.org:8448');
    const line = (name: string) => parse(new RegExp(`^(?:# )?(${name}: .*)$`, 'm').exec(text)![1]!)[name];
    assert.equal(line('macaroon_secret_key'), choices.macaroonSecretKey);
    assert.equal(line('media_store_path'), '/var/lib/hearth/media_store');
    assert.equal(values.signing_key_path, '/var/lib/hearth/example.org_8448.signing.key');
    assert.deepEqual(values.listeners[0].bind_addresses, ['0.0.0.0']);
    assert.equal(values.listeners[0].port, 8080);
    assert.equal(values.public_baseurl, undefined);
  });

  it('names commands as the operator calls them', () => {
    const comments = (command: string) => sampleConfiguration({ ...choices, command });
    assert.match(comments('npm run hearth --'), /^# {3}npm run hearth -- config explain PATH /m);
    assert.match(comments('/opt/hearth/hearth'), /^# {3}\/opt\/hearth\/hearth config docs /m);
  });

  it('explains options in the words of their definitions, in lines of at most 100 characters', () => {
    const text = sampleConfiguration(choices);
    assert.match(text, /# The name of this homeserver: the part after the colon/);
    assert.match(text, /\n# public_baseurl: https:\/\/matrix\.example\.org\/\n/);
    assert.ok(text.split('\n').every((line) => line.length <= 100));
  });
});
