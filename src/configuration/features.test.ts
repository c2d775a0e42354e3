import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { sections } from '../configuration.ts';
import { loadConfiguration } from '../kernel/config/index.ts';
import { allPaths } from '../kernel/config/option-paths.ts';
import { provenOptions } from '../kernel/config/proven-options.ts';
import { belongsTo } from '../kernel/config/reading/ignored-features.ts';
import { features } from './features.ts';

const proven = new Set(provenOptions);
const counted = allPaths(sections).flatMap((option) => (option.isCounted ? [option.path] : []));

/** Loads a document as in a release whose tests prove only the options `inForce`. */
function warningsOf(document: string, inForce: readonly string[] = ['server_name']) {
  const source = { file: 'homeserver.yaml', text: `server_name: example.org\n${document}` };
  const { errors, warnings } = loadConfiguration([source], sections, {
    proven: new Set(inForce),
    features,
  });
  assert.deepEqual(errors, []);
  return warnings.map(({ path, message, at }) => `${at?.line}: ${path}${message}`);
}

describe('features that are not in force', () => {
  it('every option that no test proves belongs to exactly one feature', () => {
    for (const path of counted.filter((option) => !proven.has(option))) {
      const owners = features.filter((feature) => belongsTo(feature, path)).map(({ name }) => name);
      assert.equal(owners.length, 1, `${path}: ${owners.join(', ') || 'no feature'}`);
    }
  });

  it('features consist of options that exist', () => {
    const known = new Set(allPaths(sections).map(({ path }) => path));
    for (const feature of features) {
      for (const path of [...feature.options, ...(feature.switches ?? [])]) {
        assert.ok(known.has(path), `${feature.name}: ${path}`);
      }
    }
  });

  it('a feature that is not in force yet causes one warning, which says what will not happen and names the ignored options', () => {
    const document = `
email: { smtp_host: mail.example.org, notif_from: "a@example.org", smtp_pass: hunter2 }
retention: { enabled: true }
oidc_providers: [{ idp_id: one, idp_name: One, issuer: "https://one.example.org/", client_id: a, client_secret: b }]
`;
    const warnings = warningsOf(document);
    assert.deepEqual(
      warnings.map((line) => line.split(',')[0]),
      [
        '3: email: not in force yet',
        '4: message retention: not in force yet',
        '5: single sign-on by OpenID Connect: not in force yet',
      ],
    );
    assert.match(warnings[0]!, /so no email is sent, .*\(ignored: email\.smtp_host, .*email\.smtp_pass\)$/);
    assert.match(warnings[1]!, /so old messages are not deleted/);
    assert.doesNotMatch(warnings.join(), /hunter2/);
  });

  it('a feature that is switched off causes no warning', () => {
    assert.deepEqual(
      warningsOf(
        'retention: { enabled: false, allowed_lifetime_min: 1d }\n' + 'cas_config: { enabled: false }\n',
      ),
      [],
    );
  });

  it('a feature that is partly in force is reported with its ignored options only', () => {
    const document = 'retention: { enabled: true, allowed_lifetime_min: 1d }';
    assert.deepEqual(warningsOf(document, ['server_name', 'retention.enabled']), [
      '2: message retention: not in force yet, this release ignores retention.allowed_lifetime_min',
    ]);
    assert.deepEqual(
      warningsOf(document, ['server_name', 'retention.enabled', 'retention.allowed_lifetime_min']),
      [],
    );
  });
});
