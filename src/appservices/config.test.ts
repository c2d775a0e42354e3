import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { loadConfiguration } from '../kernel/config/index.ts';
import { appservicesSection } from './config.ts';

it('[option: app_service_config_files] reports mistakes in a registration file at the entry of the configuration that names the file', () => {
  const folder = mkdtempSync(join(tmpdir(), 'hearth-registrations-'));
  const file = join(folder, 'invalid.yaml');
  writeFileSync(file, 'id: irc\nurl: nowhere\n');
  const text = `app_service_config_files:\n  - ${file}\n`;
  const source = { file: 'homeserver.yaml', text };
  const { errors } = loadConfiguration([source], { appservices: appservicesSection });
  const [error] = errors;
  assert.deepEqual([error?.path, error?.at?.line], ['app_service_config_files[0]', 2]);
  assert.match(error?.message ?? '', /invalid\.yaml:2:6: url: /);
  rmSync(folder, { recursive: true });
});
