export { compileServerAcl, isServerAllowed, isServerWithPortAllowed, type ServerAcl } from './server-acl.ts';
